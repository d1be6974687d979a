/** Comparisons in pairs: which belong to one chart, and its scale. */

import { change, counted, LOCALE, share, span } from '../data/format';
import type { PairedComparison, PairedFigure } from '../data/generated/view';

/** Comparisons of the same two sides. */
export interface Pairing {
  baseline: string;
  variant: string;
  /** Levels that all cells have. */
  common: string[];
  comparisons: { comparison: PairedComparison; /** The other levels of its cell. */ cell: string }[];
}

export function pairings(comparisons: PairedComparison[]): Pairing[] {
  const isSame = (a: PairedComparison, b: PairedComparison) => a.baseline === b.baseline && a.variant === b.variant;
  const firsts = comparisons.filter((one, at) => comparisons.findIndex((other) => isSame(one, other)) === at);
  return firsts.map((first): Pairing => {
    const group = comparisons.filter((one) => isSame(one, first));
    const isCommon = (level: string) => group.every(({ cell }) => cell.includes(level));
    return {
      baseline: first.baseline,
      variant: first.variant,
      common: first.cell.filter(isCommon),
      comparisons: group.map((comparison) => ({ comparison, cell: comparison.cell.filter((level) => !isCommon(level)).join(' · ') })),
    };
  });
}

/** Most of the scale, as the logarithm of a ratio: what is beyond is drawn at its end. */
const MAX_REACH = Math.log(2.5);

const size = (change: number) => Math.abs(Math.log1p(Math.max(change, -0.999)));

/** Reach of the scale, as the logarithm of a ratio: enough for most sessions and intervals, and for twice the margin. */
export function reach(figures: PairedFigure[]): number {
  const most = Math.max(0, ...figures.map(({ sessions }) => {
    const sizes = sessions.map(({ change }) => size(change)).toSorted((a, b) => a - b);
    return sizes[Math.floor(0.95 * (sizes.length - 1))] ?? 0;
  }));
  const intervals = figures.flatMap(({ change, ci99_low, ci99_high }) => [change, ci99_low, ci99_high].flatMap((one) => (one === null ? [] : [size(one)])));
  const margins = figures.map(({ margin }) => 2.2 * Math.log(margin ?? 1));
  return Math.min(Math.max(most * 1.1, ...intervals.map((one) => Math.min(one, 2 * most)), ...margins, Math.log(1.02)), MAX_REACH);
}

/** Changes at the ticks of a scale, at most five. */
export function ticks(reach: number): number[] {
  const steps = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01];
  const step = steps.find((step) => Math.log1p(2 * step) <= reach * 1.05) ?? steps.find((step) => Math.log1p(step) <= reach) ?? 0.01;
  const ticks = [-2 * step, -step, 0, step, 2 * step];
  return ticks.filter((one) => one > -1 && size(one) <= reach * 1.001);
}

/** `−5.2% (−8.0% to −2.4%)`. */
export function changeText({ change: ratio, ci99_low, ci99_high }: PairedFigure): string {
  return ci99_low === null || ci99_high === null ? change(ratio) : `${change(ratio)} (${change(ci99_low)} to ${change(ci99_high)})`;
}

/** The number of sessions, and of those that a decision takes. */
export function sessionsText({ sessions, sessions_left, seconds_left }: PairedFigure): string {
  const left = sessions_left === null
    ? ', too few'
    : sessions_left === 0
      ? ''
      : `, about ${sessions_left.toLocaleString(LOCALE)} more${seconds_left === null ? '' : `: ${span(seconds_left * 1e6)}`}`;
  return counted(sessions.length, 'session') + left;
}

/** What a reader has to know of the sessions of some comparisons. */
export function notes(comparisons: PairedComparison[]): string[] {
  const invalid = comparisons.reduce((sum, one) => sum + one.invalid, 0);
  const paused = comparisons.flatMap(({ paused_cpu }) => paused_cpu.filter((one) => one !== null));
  return [
    ...(invalid > 0 ? [`${counted(invalid, 'session')} not used: a side is invalid.`] : []),
    ...(paused.length > 0 ? [`Paused servers used up to ${share(Math.max(...paused))} of the CPU time of their own load.`] : []),
  ];
}
