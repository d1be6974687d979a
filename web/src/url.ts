/** What the reader has chosen. All of it lives in the URL's fragment, so that a link shows what its sender saw. */

import type { Column, Panel } from './view';

export type Theme = 'auto' | 'light' | 'dark';

/** The factors by which panels can be chosen. */
export const FACTORS = ['workload', 'scale', 'protocol', 'transport'] as const;
export type Factor = (typeof FACTORS)[number];

export interface Selection {
  /** The one level shown of a factor; none for all of them. */
  levels: Partial<Record<Factor, string>>;
  /** Keys of the columns that are not drawn. */
  hidden: string[];
  /** Id of the trial whose details are open. */
  trial: string | null;
  /** What the flame graph shows, by the keys of `FLAME`. */
  flame: Flame;
  theme: Theme;
}

/** Which profile, beside which other one, of which role, from which function on, and what is looked for. */
export const FLAME = ['profile', 'against', 'role', 'from', 'find'] as const;
export type Flame = Partial<Record<(typeof FLAME)[number], string>>;

/** Names a column in URLs. */
export function columnKey(column: Column): string {
  // Imported trials may not say.
  return column.server === null || column.settings === null ? column.label : `${column.server}_${column.settings}`;
}

export function parseSelection(fragment: string): Selection {
  const pairs = new URLSearchParams(fragment.replace(/^#/, ''));
  const levels: Selection['levels'] = {};
  for (const factor of FACTORS) {
    const level = pairs.get(factor);
    if (level) levels[factor] = level;
  }
  const flame: Flame = {};
  for (const key of FLAME) {
    const value = pairs.get(`flame-${key}`);
    if (value) flame[key] = value;
  }
  const theme = pairs.get('theme');
  return {
    levels,
    hidden: pairs.getAll('hide'),
    trial: pairs.get('trial'),
    flame,
    theme: theme === 'light' || theme === 'dark' ? theme : 'auto',
  };
}

/** The fragment without `#`; empty where nothing is chosen. */
export function formatSelection(selection: Selection): string {
  const pairs = new URLSearchParams();
  for (const factor of FACTORS) {
    const level = selection.levels[factor];
    if (level) pairs.set(factor, level);
  }
  for (const key of selection.hidden) pairs.append('hide', key);
  if (selection.trial) pairs.set('trial', selection.trial);
  for (const key of FLAME) {
    const value = selection.flame[key];
    if (value) pairs.set(`flame-${key}`, value);
  }
  if (selection.theme !== 'auto') pairs.set('theme', selection.theme);
  return pairs.toString();
}

function levelOf(factor: Factor, panel: Panel): string {
  return String(panel[factor] ?? 'unknown');
}

/** The levels that a factor has among the panels, in their order. */
export function levelsOf(factor: Factor, panels: Panel[]): string[] {
  return [...new Set(panels.map((panel) => levelOf(factor, panel)))];
}

/** A level that no panel has (an old link, say) chooses nothing. */
export function isChosen(panel: Panel, selection: Selection, panels: Panel[]): boolean {
  return FACTORS.every((factor) => {
    const level = selection.levels[factor];
    return !level || levelOf(factor, panel) === level || !levelsOf(factor, panels).includes(level);
  });
}
