/** Charts of the running campaign: the running trial, second by second, and the sessions of a campaign in pairs. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import { colour, symbol } from '../parts/series';
import { change, count, tick } from '../data/format';
import type { Interval, TrialBegins } from '../data/live';
import type { Session } from './state';

export interface Line {
  value: (interval: Interval) => number | null;
  colour: string;
  name: string;
}

export interface Drawing {
  lines: Line[];
  /** Label of the vertical axis, with its unit. */
  label: string;
  /** Divisor of the values on the axis. */
  unit: number;
  log: boolean;
}

const FRAME = {
  height: 180,
  marginLeft: 62,
  marginRight: 34,
  marginTop: 26,
  marginBottom: 38,
  style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
};

/** Draws an axis as long as the planned trial, so that nothing moves while it fills. */
export function liveChart(intervals: Interval[], trial: TrialBegins, { lines, label, unit, log }: Drawing, width: number): Element {
  const end = Math.max((trial.warmup_us + trial.duration_us) / 1e6, ...intervals.slice(-1).map(({ start_us, width_us }) => (start_us + width_us) / 1e6));
  const points = lines.flatMap((line) =>
    intervals
      .filter(({ phase, width_us }) => phase !== 'drain' && width_us > 0)
      .map((interval) => ({ line, at: (interval.start_us + interval.width_us / 2) / 1e6, value: scaled(line.value(interval), unit, log) })),
  );
  return plot({
    ...FRAME,
    width,
    x: { domain: [0, end], label: 'seconds after the load’s start', labelAnchor: 'center', labelArrow: 'none', tickSize: 4 },
    y: {
      type: log ? 'log' : 'linear',
      ...(log ? {} : { domain: [0, Math.max(1e-9, ...points.map(({ value }) => value ?? 0)) || 1] }),
      nice: true,
      ticks: 4,
      tickFormat: tick,
      tickSize: 0,
      label,
      labelArrow: 'none',
    },
    marks: [
      trial.warmup_us > 0 ? Plot.rectX([{ from: 0, to: trial.warmup_us / 1e6 }], { x1: 'from', x2: 'to', fill: 'var(--rule)', fillOpacity: 0.6 }) : null,
      log ? Plot.ruleY(decades(points), { stroke: 'var(--rule)' }) : Plot.gridY({ ticks: 4, stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.text(points.length > 0 ? [] : ['not begun yet'], { frameAnchor: 'middle', fill: 'var(--soft)' }),
      Plot.lineY(points, { x: 'at', y: 'value', z: (point: (typeof points)[number]) => point.line.name, stroke: (point: (typeof points)[number]) => point.line.colour, strokeWidth: 1.5 }),
      lines.length > 1
        ? Plot.text(points, Plot.selectLast({ x: 'at', y: 'value', z: (point: (typeof points)[number]) => point.line.name, text: (point: (typeof points)[number]) => point.line.name, textAnchor: 'start', dx: 5, fill: (point: (typeof points)[number]) => point.line.colour }))
        : null,
    ],
  });
}

/** Draws the change of each session, and the geometric mean of those of its variant so far. `variants` are in the order of colours. */
export function sessionChart(sessions: Session[], variants: string[], width: number): Element {
  const points = variants.flatMap((variant, at) => {
    let sum = 0;
    return sessions
      .filter((session) => session.variant === variant)
      .map(({ number, ratio }, nth) => {
        sum += Math.log(ratio);
        return { number, at, change: ratio - 1, mean: Math.exp(sum / (nth + 1)) - 1 };
      });
  });
  type Point = (typeof points)[number];
  const ink = ({ at }: Point) => colour(at);
  return plot({
    ...FRAME,
    width,
    x: { label: 'session', labelAnchor: 'center', labelArrow: 'none', tickSize: 4, tickFormat: (number: number) => (Number.isInteger(number) ? count(number) : '') },
    y: { nice: true, ticks: 4, tickFormat: change, tickSize: 0, label: 'change', labelArrow: 'none' },
    marks: [
      Plot.gridY({ ticks: 4, stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.ruleY([0], { stroke: 'var(--soft)' }),
      Plot.text(points.length > 0 ? [] : ['no session yet'], { frameAnchor: 'middle', fill: 'var(--soft)' }),
      Plot.dot(points, { x: 'number', y: 'change', r: 3, symbol: ({ at }: Point) => symbol(at), fill: ink }),
      Plot.lineY(points, { x: 'number', y: 'mean', z: 'at', stroke: ink, strokeWidth: 1.5 }),
    ],
  });
}

function scaled(value: number | null, unit: number, log: boolean): number | null {
  // A logarithm has no zero.
  return value === null || (log && value <= 0) ? null : value / unit;
}

/** The powers of ten among and around the values. */
function decades(points: { value: number | null }[]): number[] {
  const logs = points.flatMap(({ value }) => (value === null ? [] : [Math.log10(value)]));
  if (logs.length === 0) return [];
  const [first, last] = [Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs))];
  return Array.from({ length: last - first + 1 }, (_, nth) => 10 ** (first + nth));
}
