/** Differences between two columns of a view: levels of factors, versions, facts of the machine, settings. */

import { setting } from '../data/format';
import { COLUMN_FACTORS } from '../data/url';
import type { Fact, View } from '../data/generated/view';

export interface Differing {
  what: string;
  kind: 'factor' | 'server' | 'machine' | 'setting';
  before: string;
  after: string;
  /** Whether the campaign declares it; an undeclared one is a confound if the columns are compared. */
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
  const varied = new Set(factors.map(({ what }) => what));
  return [
    ...factors,
    ...row('server', 'version', was.versions.join(', '), now.versions.join(', '), varied.has('server')),
    ...row('server', 'build', build(was.banners), build(now.banners)),
    ...view.environment.facts.filter(({ name }) => !RUNNING.has(name)).flatMap((fact) => {
      const [before, after] = [valuesOf(fact, against), valuesOf(fact, of)];
      // Facts of a kernel follow from it; its command line does not.
      const declared =
        varied.has('host') ||
        (varied.has('kernel') && fact.of_kernel) ||
        (varied.has('kernel_args') && ['kernel command line', 'mitigations', 'preemption', 'clock source'].includes(fact.name)) ||
        (varied.has('sysctl') && fact.group === 'sysctl');
      return LISTS.has(fact.name)
        ? row('machine', fact.name, wordsOnlyIn(before, after), wordsOnlyIn(after, before), declared)
        : row('machine', fact.name, before, after, declared);
    }),
    ...view.environment.settings.flatMap(({ name, values }) => {
      const text = (at: number) => {
        const value = values[at];
        return value ? value.values.map((one) => (one === '' ? '(empty)' : setting(one, value.unit))).join(', ') : 'does not have it';
      };
      const isDefault = [values[of], values[against]].every((value) => !value || value.default);
      // Values of the factor `settings` are declared; another version's default is not.
      return row('setting', name, text(against), text(of), varied.has('settings') && !isDefault);
    }),
  ];
}

export interface ChangedOption {
  name: string;
  matters: boolean;
  before: string;
  after: string;
}

/** Options in which the configurations of two columns' kernels differ, those that matter to a server first. */
export function changedOptions(view: View, of: number, against: number): ChangedOption[] {
  return view.environment.kernel_options.flatMap(({ name, matters, values }) => {
    const [before, after] = [values[against] ?? null, values[of] ?? null];
    return before === null || after === null || before === after ? [] : [{ name, matters, before, after }];
  });
}

/** Facts that are lists of words: only words of one side are shown. */
const LISTS = new Set(['kernel command line', 'modules']);

/** Words of one list only, without those that name the kernel's file. */
function wordsOnlyIn(list: string, other: string): string {
  const others = new Set(other.split(' '));
  return list.split(' ').filter((word) => !others.has(word) && !/^(BOOT_IMAGE|initrd)=/.test(word)).join(' ');
}

/** Facts that naturally differ in every trial. */
const RUNNING = new Set(['load average before a trial']);

/** Build and platform, without the version, which has a row of its own. */
function build(banners: string[]): string {
  return banners.map((banner) => banner.replace(/^PostgreSQL \S+( \([^)]*\))? on /, '')).join('; ');
}

function valuesOf({ values }: Fact, at: number): string {
  const has = values.filter(({ columns }) => (columns[at] ?? 0) > 0);
  return has.map(({ value }) => value ?? 'not known').sort().join(', ');
}
