/** The chart of a bisection: its bars, its scales and its labels; and the description of a level. */

import { change, counted, fixed, MISSING, upper } from '../data/format';
import type { Table } from '../data/table';
import type { Bisection, BisectionChange, BisectionLevel, View } from '../data/generated/view';

/** Neighbouring levels with one bar. */
export interface Bar {
  /** Index of the first level, and of the last. */
  from: number;
  to: number;
  /** The sum of their probabilities. */
  share: number;
  /** Index of the most probable of them. */
  top: number;
}

/** Narrowest bar in pixels, with the gap after it. */
const BAR = 4;

/** The bars in so many pixels: one for each level after the baseline, or for equally many levels each. Empty before the search. */
export function bars({ levels }: Bisection, width: number): Bar[] {
  const each = Math.max(1, Math.ceil((BAR * levels.length) / width));
  const bars: Bar[] = [];
  for (let from = 1; from < levels.length; from += each) {
    const to = Math.min(levels.length, from + each) - 1;
    const shares = levels.slice(from, to + 1).map(({ probability }) => probability ?? 0);
    const most = Math.max(...shares);
    bars.push({ from, to, share: shares.reduce((sum, one) => sum + one, 0), top: from + shares.indexOf(most) });
  }
  return levels.some(({ probability }) => probability !== null) ? bars : [];
}

/** The round share at the end of an axis that has these bars. */
export function reachOfBars(bars: Bar[]): number {
  const most = Math.max(0, ...bars.map(({ share }) => share));
  return [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((end) => end >= most) ?? 1;
}

/** Position on the scale of changes: that of a ratio's logarithm. */
export function position(change: number): number {
  return Math.log1p(Math.max(change, -0.999));
}

/** Both ends of the scale of changes: the measured levels, and their intervals unless they are much wider than that. */
export function reachOfChanges({ levels, ends }: Bisection): [number, number] {
  const changes = levels.flatMap(({ change }) => (change === null ? [] : [position(change)]));
  const margin = Math.log(ends.margin);
  const [low, high] = [Math.min(-margin, ...changes), Math.max(margin, ...changes)];
  const room = 0.6 * (high - low);
  const lows = levels.flatMap(({ ci95_low }) => (ci95_low === null ? [] : [position(ci95_low)]));
  const highs = levels.flatMap(({ ci95_high }) => (ci95_high === null ? [] : [position(ci95_high)]));
  const edge = 0.06 * (high - low);
  return [Math.max(Math.min(low, ...lows), low - room) - edge, Math.min(Math.max(high, ...highs), high + room) + edge];
}

/** Round changes within a scale, at most six. */
export function ticksOfChanges([low, high]: [number, number]): number[] {
  for (const step of [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]) {
    const ticks: number[] = [];
    for (let n = Math.ceil(Math.expm1(low) / step); n * step <= Math.expm1(high); n += 1) {
      // Not −0.
      ticks.push(n === 0 ? 0 : Number((n * step).toFixed(4)));
    }
    if (ticks.length <= 6) return ticks;
  }
  return [0];
}

export interface AxisLabel {
  level: number;
  text: string;
  x: number;
  anchor: 'start' | 'middle' | 'end';
}

/** Approximate width of a letter in pixels, and the least gap between two labels. */
const LETTER = 7;
const GAP = 10;

/** Labels of levels that fit below an axis: all of them, or the changes, both ends and the candidates as far as there is room. */
export function axisLabels(bisection: Bisection, x: (level: number) => number, width: number): AxisLabel[] {
  const { levels, changes } = bisection;
  const found = changes.flatMap(({ first, last }) => [first, last]);
  const wanted = [...new Set([...found, 0, levels.length - 1, ...(levels.length <= 60 ? levels.keys() : [])])];
  const placed: (AxisLabel & { left: number; right: number })[] = [];
  for (const level of wanted) {
    const text = levels[level]?.short ?? '';
    const half = (LETTER * text.length) / 2;
    const at = x(level);
    const anchor = at < half ? 'start' : at > width - half ? 'end' : 'middle';
    const left = anchor === 'start' ? 0 : anchor === 'end' ? width - 2 * half : at - half;
    const label = { level, text, x: anchor === 'start' ? 0 : anchor === 'end' ? width : at, anchor, left, right: left + 2 * half } as const;
    if (2 * half <= width && placed.every((other) => label.right + GAP < other.left || other.right + GAP < label.left)) placed.push(label);
  }
  return placed.map(({ level, text, x, anchor }) => ({ level, text, x, anchor }));
}

/** A probability; one of more than 99.9% is not certain. */
export function probability(part: number | null): string {
  if (part === null) return MISSING;
  return part > 0.999 ? `>${fixed(99.9, 1)}%` : part < 0.0005 ? `<${fixed(0.1, 1)}%` : `${fixed(100 * part, 1)}%`;
}

/** `−5.2% (−8.0% to −2.4%)`; nothing without a value. */
export function withInterval(ratio: number | null, low: number | null, high: number | null): string {
  if (ratio === null) return '';
  return low === null || high === null ? change(ratio) : `${change(ratio)} (${change(low)} to ${upper(high)})`;
}

/** The first line of why a level can't be measured, without the place of a log. */
export function reason({ unavailable }: BisectionLevel): string | null {
  return unavailable === null ? null : (unavailable.split('\n')[0]?.split('. The log is ')[0] ?? '');
}

/** Direction of a change. */
export function direction(ratio: number | null, { better }: Bisection): 'worse' | 'better' | 'same' {
  if (ratio === null || ratio === 0) return 'same';
  return ratio < 0 === (better === 'higher') ? 'worse' : 'better';
}

/** The levels of a change in words. */
export function named({ first, last }: BisectionChange, { levels }: Bisection): string {
  const [from, to] = [levels[first]?.short ?? '', levels[last]?.short ?? ''];
  return first === last ? from : `${from} to ${to}`;
}

/** The level that the pointer is at: a measured one near it, else the most probable one of the bar. */
export function pointed(bisection: Bisection, bars: Bar[], x: (level: number) => number, at: number): number | null {
  const { levels } = bisection;
  const near = levels.flatMap(({ change, unavailable }, level) => (change === null && unavailable === null ? [] : [level]));
  const distance = (level: number) => Math.abs(x(level) - at);
  const [first] = near.toSorted((a, b) => distance(a) - distance(b));
  const under = levels.length > 0 ? [...levels.keys()].reduce((best, level) => (distance(level) < distance(best) ? level : best), 0) : null;
  if (first !== undefined && (distance(first) <= 4 || first === under)) return first;
  return bars.find(({ from, to }) => under !== null && from <= under && under <= to)?.top ?? under;
}

/** The level that a key leads to: left and right to the next one, up and down to the next one that was measured. */
export function stepped({ levels }: Bisection, now: number | null, key: string): number | null {
  const all = [...levels.keys()];
  const measured = levels.flatMap(({ change }, level) => (change === null ? [] : [level]));
  const after = (of: number[]) => of.find((level) => level > (now ?? -1)) ?? of[0] ?? null;
  const before = (of: number[]) => of.findLast((level) => level < (now ?? levels.length)) ?? of.at(-1) ?? null;
  switch (key) {
    case 'ArrowRight': return after(all);
    case 'ArrowLeft': return before(all);
    case 'ArrowDown': return after(measured);
    case 'ArrowUp': return before(measured);
    case 'Home': return all[0] ?? null;
    case 'End': return all.at(-1) ?? null;
    default: return null;
  }
}

/** All levels as a table. */
export function table({ levels, label, what }: Bisection): Table {
  return {
    columns: [
      { name: what, text: true },
      { name: 'title', text: true },
      { name: 'probability', show: probability },
      { name: 'sessions' },
      { name: `change of ${label}`, show: change },
      { name: '95% low', show: change },
      { name: '95% high', show: change },
      { name: 'not measured', text: true },
    ],
    rows: levels.map((level) => [
      level.name, level.title, level.probability, level.sessions.length, level.change, level.ci95_low, level.ci95_high, reason(level),
    ]),
  };
}

/** What is drawn, in words. */
export function description(bisection: Bisection): string {
  const { levels, what, changes, measured, sessions, label } = bisection;
  const found = changes.map((one) => `${named(one, bisection)} with ${probability(one.probability)}`);
  return `Probability of the change by ${what}, and change of ${label} at ${measured} of ${counted(levels.length, 'level')} in ${counted(sessions, 'session')}${found.length > 0 ? `; found at ${found.join(' and ')}` : ''}.`;
}

/** Whether all that a view has are bisections, so that comparisons are only what they are made of. */
export function areBisections({ runs, bisections }: View): boolean {
  return bisections.length > 0 && bisections.length === runs.length;
}
