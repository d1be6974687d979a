/** What differs between two columns of a view: levels of factors, versions, facts of the machine, settings. */

import { setting } from '../data/format';
import { COLUMN_FACTORS } from '../data/url';
import type { Fact, View } from '../data/view';

export interface Differing {
  what: string;
  kind: 'factor' | 'server' | 'machine' | 'setting';
  before: string;
  after: string;
  /** Whether the campaign declares it; what it does not is a confound where the columns are compared. */
  declared: boolean;
}

/** `of` and `against` are indices of columns. */
export function difference(view: View, of: number, against: number): Differing[] {
  const [now, was] = [view.columns[of], view.columns[against]];
  if (!now || !was) return [];
  const row = (kind: Differing['kind'], what: string, before: string, after: string, declared = false): Differing[] =>
    before === after ? [] : [{ what, kind, before, after, declared }];
  const factors = COLUMN_FACTORS.flatMap((factor) =>
    row('factor', factor, was.levels[factor] ?? 'not known', now.levels[factor] ?? 'not known', true),
  );
  const told = new Set(factors.map(({ what }) => what));
  return [
    ...factors,
    ...row('server', 'version', was.versions.join(', '), now.versions.join(', '), told.has('server')),
    ...row('server', 'build', build(was.banners), build(now.banners)),
    ...view.environment.facts.filter(({ name }) => !RUNNING.has(name)).flatMap((fact) =>
      row('machine', fact.name, valuesOf(fact, against), valuesOf(fact, of), told.has('host') || (told.has('kernel') && fact.name.startsWith('kernel'))),
    ),
    ...view.environment.settings.flatMap(({ name, values }) => {
      const text = (at: number) => {
        const value = values[at];
        return value ? value.values.map((one) => (one === '' ? '(empty)' : setting(one, value.unit))).join(', ') : 'does not have it';
      };
      const isDefault = [values[of], values[against]].every((value) => !value || value.default);
      // What the settings' own factor sets is declared; another version's default is not.
      return row('setting', name, text(against), text(of), told.has('settings') && !isDefault);
    }),
  ];
}

/** Facts that are another one in every trial by nature. */
const RUNNING = new Set(['load average before a trial']);

/** Without the version, which is told by itself: what it was built with, and for what. */
function build(banners: string[]): string {
  return banners.map((banner) => banner.replace(/^PostgreSQL \S+( \([^)]*\))? on /, '')).join('; ');
}

function valuesOf({ values }: Fact, at: number): string {
  const has = values.filter(({ columns }) => (columns[at] ?? 0) > 0);
  return has.map(({ value }) => value ?? 'not known').sort().join(', ');
}
