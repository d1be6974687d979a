/** The reader's selection. All of it is in the URL's fragment, so that a link shows its sender's view. */

import type { Column, Panel } from './generated/view';

export type Theme = 'auto' | 'light' | 'dark';

/** The pages, in the order of their links; the first is the start page. */
export const PAGES = ['overview', 'trial', 'profiles', 'history', 'environment', 'live'] as const;
export type Page = (typeof PAGES)[number];

/** The factors by which panels can be selected. */
export const FACTORS = ['workload', 'scale', 'protocol', 'transport'] as const;
export type Factor = (typeof FACTORS)[number];

export interface Selection {
  page: Page;
  /** Id of the displayed run, of a store that has several; null for the latest. */
  run: string | null;
  /** The only level shown of a factor; none for all of them. */
  levels: Partial<Record<Factor, string>>;
  /** Keys of the hidden columns. */
  hidden: string[];
  /** Id of the trial that is highlighted in the overview and shown in full on the trial page. */
  trial: string | null;
  /** Id of the trial that it is compared with there. */
  against: string | null;
  /** The time range that is shown there, in seconds after the load's start; null for all of it. */
  zoom: { from: number; to: number } | null;
  /** Metrics that are drawn there, as `metric` or `metric of`. */
  metrics: string[];
  /** Short name of the level of a bisection whose details are open. */
  level: string | null;
  /** Filter and order of the verdicts, by the keys of `VERDICTS`. */
  verdicts: VerdictChoice;
  /** Filter and order of the statements of a trace, and the open one, by the keys of `STATEMENTS`. */
  statements: StatementsChoice;
  /** Selection in the views over several scales, by the keys of `SCALES`. */
  scales: ScalesChoice;
  /** The two columns whose environments are compared, by the keys of `DIFFERENCE`. */
  difference: Difference;
  /** Selection of the flame graph, by the keys of `FLAME`. */
  flame: Flame;
  /** Selection of the history, by the keys of `HISTORY`. */
  history: HistoryChoice;
  theme: Theme;
}

/** Sort column (descending if it begins with `-`), kind of verdict, and text that the cell contains. */
export const VERDICTS = ['sort', 'kind', 'find'] as const;
export type VerdictChoice = Partial<Record<(typeof VERDICTS)[number], string>>;

/** Sort column (descending if it begins with `-`), text that a statement contains, and fingerprint of the open one. */
export const STATEMENTS = ['sort', 'find', 'of'] as const;
export type StatementsChoice = Partial<Record<(typeof STATEMENTS)[number], string>>;

/** Number of clients, and key of a column. */
export const SCALES = ['clients', 'column'] as const;
export type ScalesChoice = Partial<Record<(typeof SCALES)[number], string>>;

/** Keys of columns. */
export const DIFFERENCE = ['of', 'against'] as const;
export type Difference = Partial<Record<(typeof DIFFERENCE)[number], string>>;

/** Profile, profile compared with, role, root function, and search text. */
export const FLAME = ['profile', 'against', 'role', 'from', 'find'] as const;
export type Flame = Partial<Record<(typeof FLAME)[number], string>>;

/** Factor that the history is over, and its cell. */
export const HISTORY = ['over', 'cell'] as const;
export type HistoryChoice = Partial<Record<(typeof HISTORY)[number], string>>;

/** The factors that distinguish columns. */
export const COLUMN_FACTORS = ['server', 'settings', 'kernel', 'kernel_args', 'sysctl', 'host', 'pin'] as const;

/** Key of a column in URLs. */
export function columnKey(column: Column): string {
  const levels = COLUMN_FACTORS.flatMap((factor) => {
    const level = column.levels[factor];
    return level === undefined || level === 'none' || (factor === 'sysctl' && level === 'default') ? [] : [level];
  });
  // Imported trials may have no known level.
  return levels.join('_') || column.label;
}

export function parseSelection(fragment: string): Selection {
  const pairs = new URLSearchParams(fragment.replace(/^#/, ''));
  const theme = pairs.get('theme');
  return {
    page: PAGES.find((page) => page === pairs.get('page')) ?? PAGES[0],
    run: pairs.get('run'),
    levels: chosen(pairs, FACTORS, ''),
    hidden: pairs.getAll('hide'),
    trial: pairs.get('trial'),
    against: pairs.get('against'),
    zoom: parseZoom(pairs.get('zoom')),
    metrics: pairs.getAll('metric'),
    level: pairs.get('level'),
    verdicts: chosen(pairs, VERDICTS, 'verdict-'),
    statements: chosen(pairs, STATEMENTS, 'statement-'),
    scales: chosen(pairs, SCALES, 'scales-'),
    difference: chosen(pairs, DIFFERENCE, 'difference-'),
    flame: chosen(pairs, FLAME, 'flame-'),
    history: chosen(pairs, HISTORY, 'history-'),
    theme: theme === 'light' || theme === 'dark' ? theme : 'auto',
  };
}

/** The fragment without `#`; empty if nothing is selected. */
export function formatSelection(selection: Selection): string {
  const pairs = new URLSearchParams();
  if (selection.page !== PAGES[0]) pairs.set('page', selection.page);
  if (selection.run) pairs.set('run', selection.run);
  put(pairs, selection.levels, FACTORS, '');
  for (const key of selection.hidden) pairs.append('hide', key);
  if (selection.trial) pairs.set('trial', selection.trial);
  if (selection.against) pairs.set('against', selection.against);
  if (selection.zoom) pairs.set('zoom', `${round(selection.zoom.from)}-${round(selection.zoom.to)}`);
  for (const metric of selection.metrics) pairs.append('metric', metric);
  if (selection.level) pairs.set('level', selection.level);
  put(pairs, selection.verdicts, VERDICTS, 'verdict-');
  put(pairs, selection.statements, STATEMENTS, 'statement-');
  put(pairs, selection.scales, SCALES, 'scales-');
  put(pairs, selection.difference, DIFFERENCE, 'difference-');
  put(pairs, selection.flame, FLAME, 'flame-');
  put(pairs, selection.history, HISTORY, 'history-');
  if (selection.theme !== 'auto') pairs.set('theme', selection.theme);
  return pairs.toString();
}

/** Whether the change of selection is a step that the browser's back button undoes. */
export function isStep(from: Selection, to: Selection): boolean {
  const place = ({ page, run, levels, against, trial, difference, flame: { profile }, history }: Selection) =>
    JSON.stringify([page, run, levels, against, page === 'trial' ? trial : null, difference, profile, history]);
  return place(from) !== place(to);
}

function chosen<K extends string>(pairs: URLSearchParams, keys: readonly K[], prefix: string): Partial<Record<K, string>> {
  const found: Partial<Record<K, string>> = {};
  for (const key of keys) {
    const value = pairs.get(prefix + key);
    if (value) found[key] = value;
  }
  return found;
}

function put<K extends string>(pairs: URLSearchParams, choice: Partial<Record<K, string>>, keys: readonly K[], prefix: string) {
  for (const key of keys) {
    const value = choice[key];
    if (value) pairs.set(prefix + key, value);
  }
}

function parseZoom(text: string | null): Selection['zoom'] {
  const [, from, to] = /^(-?[\d.]+)-([\d.]+)$/.exec(text ?? '') ?? [];
  const zoom = { from: Number(from), to: Number(to) };
  return zoom.from < zoom.to ? zoom : null;
}

function round(seconds: number): number {
  return Number(seconds.toFixed(3));
}

function levelOf(factor: Factor, panel: Panel): string {
  if (factor === 'scale' && panel.dataset !== null) return panel.dataset;
  return String(panel[factor] ?? 'unknown');
}

/** The levels that a factor has among the panels, in their order. */
export function levelsOf(factor: Factor, panels: Panel[]): string[] {
  return [...new Set(panels.map((panel) => levelOf(factor, panel)))];
}

/** Whether a panel is selected. A level that no panel has, as in an old link, selects all. */
export function isChosen(panel: Panel, selection: Selection, panels: Panel[]): boolean {
  return FACTORS.every((factor) => {
    const level = selection.levels[factor];
    return !level || levelOf(factor, panel) === level || !levelsOf(factor, panels).includes(level);
  });
}
