/** A cell over the steps of a history: every run as a dot, a line through the medians, a mark where it changed. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import { change, fixed, tick } from '../data/format';
import type { History, HistoryCell, HistoryChange } from '../data/generated/history';

const MARGIN_RIGHT = 12;
/** Width of a letter of the axis, in pixels. */
const LETTER = 6.2;
/** Width of a change's label, in pixels. */
const WIDEST = 76;
/** Longest name of a step that is not cut, in characters. */
const LONGEST = 14;

/** A figure of the metric, with about three significant digits. */
export function figure(value: number | null): string {
  if (value === null) return '–';
  const size = Math.abs(value);
  return fixed(value, size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : size >= 0.995 ? 2 : 4);
}

/** Order of the factors in a cell's title. */
const FIRST = ['server', 'settings', 'workload', 'scale', 'clients'];

/** Levels that distinguish a cell from the others, such as its scale and clients. */
export function cellTitle(cell: HistoryCell, all: HistoryCell[]): string {
  const varies = (factor: string) => all.some((other) => other.cell[factor] !== cell.cell[factor]);
  const place = (factor: string) => (FIRST.includes(factor) ? FIRST.indexOf(factor) : FIRST.length);
  const levels = Object.entries(cell.cell).toSorted(([a], [b]) => place(a) - place(b));
  const varying = levels.filter(([factor]) => varies(factor));
  // A database of the user's own has its name instead of a scale.
  const speaks = (factor: string, level: string) => factor === 'workload' || (factor === 'scale' && !/^\d+$/.test(level));
  const named = (varying.length > 0 ? varying : levels).map(([factor, level]) => (speaks(factor, level) ? level : `${factor} ${level}`));
  return named.join(', ') || 'the one cell';
}

/** `improvement +9.8% (+2.4% to +17.7%), accepted`. */
export function changeText({ verdict, ratio, ci95_low, ci95_high, accepted }: HistoryChange): string {
  const interval = ci95_low === null || ci95_high === null ? '' : ` (${change(ci95_low - 1)} to ${change(ci95_high - 1)})`;
  return `${verdict.toLowerCase()} ${change(ratio - 1)}${interval}${accepted === null ? '' : ', accepted'}`;
}

/** Direction of a change. */
export function changeDirection(verdict: string): 'worse' | 'better' | 'open' {
  return verdict.startsWith('REGRESSION') ? 'worse' : verdict.startsWith('IMPROVEMENT') ? 'better' : 'open';
}

const SIGNS = { worse: '▼', better: '▲', open: '◆' };
const INKS = { worse: 'var(--worse)', better: 'var(--better)', open: 'var(--ink)' };

export function historyChart(history: History, cell: HistoryCell, width: number, small: boolean): Element {
  const height = chartHeight(width, small);
  const dots = cell.points.flatMap(({ values }, step) => values.map((value) => ({ step, value })));
  const medians = cell.points.map(({ median }, step) => ({ step, value: median }));
  const figures = dots.map(({ value }) => value);
  const [least, most] = [Math.min(...figures), Math.max(...figures)];
  const marginLeft = 14 + 7 * Math.max(figure(least).length, figure(most).length);
  const last = history.steps.length - 1;
  const room = (width - marginLeft - MARGIN_RIGHT) / Math.max(1, last);
  const name = (step: number) => {
    const label = history.steps[step]?.label ?? '';
    return label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label;
  };
  const longest = Math.max(...history.steps.map((_, step) => name(step).length));
  // Slanted names need the height of a line each.
  const every = Math.max(1, Math.ceil((small ? 26 : 14) / room));
  const ticks = history.steps.map((_, step) => step).filter((step) => step % every === 0);
  const levels = levelsOf(cell, last);
  const changes = labelled(cell.changes, room);
  return plot({
    width,
    height,
    marginLeft,
    marginRight: MARGIN_RIGHT,
    marginTop: 48,
    marginBottom: 14 + Math.ceil(longest * LETTER * 0.72),
    style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    x: { type: 'linear', domain: [0, Math.max(1, last)], inset: 10, ticks, tickFormat: name, tickRotate: -45, tickSize: 3, label: null },
    y: {
      // The chart shows changes: the axis does not begin at zero, as its figures show.
      domain: least < most ? [least - 0.08 * (most - least), most + 0.12 * (most - least)] : [least * 0.9, least * 1.1 || 1],
      nice: true,
      ticks: 4,
      tickFormat: tick,
      tickSize: 0,
      label: axisLabel(history),
      labelArrow: 'none',
    },
    marks: [
      Plot.gridY({ ticks: 4, stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.ruleX(changes, { x: 'x', stroke: ({ way }: Labelled) => INKS[way], strokeWidth: 1.2, strokeDasharray: '4 3' }),
      Plot.link(levels, { x1: 'from', x2: 'to', y1: 'value', y2: 'value', stroke: 'var(--axis)', strokeWidth: 5, strokeOpacity: 0.35 }),
      Plot.dot(dots, { x: 'step', y: 'value', r: 2.4, fill: 'var(--series-0)', fillOpacity: 0.5 }),
      Plot.lineY(medians, { x: 'step', y: 'value', stroke: 'var(--series-0)', strokeWidth: 1.5 }),
      ...[0, 1].map((row) =>
        Plot.text(changes.filter((one) => one.row === row), {
          x: 'x',
          frameAnchor: 'top',
          dy: -8 - 12 * row,
          text: ({ way, ratio, accepted }: Labelled) => `${SIGNS[way]} ${change(ratio - 1)}${accepted === null ? '' : ' ✓'}`,
          fill: ({ way }: Labelled) => INKS[way],
          fontSize: 11,
          fontWeight: 600,
        }),
      ),
    ],
  });
}

interface Labelled extends HistoryChange {
  x: number;
  way: keyof typeof SIGNS;
  /** Row of the label: neighbouring labels are stacked. */
  row: number;
}

/** `room` is the width of a step, in pixels. */
function labelled(changes: HistoryChange[], room: number): Labelled[] {
  const placed: Labelled[] = [];
  for (const one of changes) {
    const x = (one.before + one.after) / 2;
    const last = placed.at(-1);
    const near = last !== undefined && (x - last.x) * room < WIDEST;
    placed.push({ ...one, x, way: changeDirection(one.verdict), row: near ? 1 - last.row : 0 });
  }
  return placed;
}

/** Height of a chart of this width. style.css reserves the same. */
export function chartHeight(width: number, small: boolean): number {
  return small ? 230 : Math.round(Math.max(280, Math.min(400, width * 0.5)));
}

export function axisLabel({ metric, better, control }: History): string {
  const unit = metric === 'tps' ? 'transactions per second' : metric.startsWith('latency') ? `${metric} (µs)` : metric;
  const of = control === null ? unit : `${unit} relative to ${control}`;
  return better === 'neither' ? of : `${better === 'higher' ? '↑' : '↓'} ${of}, ${better} is better`;
}

/** The level between one change and the next: the geometric mean of the medians. */
function levelsOf({ points, changes }: HistoryCell, last: number): { from: number; to: number; value: number }[] {
  const starts = [0, ...changes.map(({ after }) => after)];
  return starts.flatMap((from, nth) => {
    const to = nth + 1 < starts.length ? (changes[nth]?.before ?? last) : last;
    const known = points.slice(from, to + 1).flatMap(({ median }) => (median !== null && median > 0 ? [Math.log(median)] : []));
    if (known.length === 0) return [];
    return [{ from, to, value: Math.exp(known.reduce((sum, one) => sum + one, 0) / known.length) }];
  });
}
