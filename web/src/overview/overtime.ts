/** The executions of a statement over the recorded time of its trace: a chart of their mean times, and one of their number. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import { logTicks, tickLabel, ticks, timeLabel, timeTicks } from '../trial/axis';
import { count, inUnit, latency } from '../data/format';
import type { OverTime, PlayedStatement } from '../data/generated/view';
import type { Table } from '../data/table';

/** A side of a statement. */
export interface TimedSide {
  name: string;
  colour: string;
  dashed: boolean;
  times: OverTime;
}

interface Point {
  /** Start of the slice, in seconds of recorded time. */
  from: number;
  /** Its end. */
  to: number;
  /** Where a line goes through it: its middle. */
  x: number;
  calls: number;
  us: number | null;
}

/** Slices without executions that a line spans: those of statements that are executed now and then. */
const MAX_GAP = 5;

export function timedSides({ over_time }: PlayedStatement, names: [string, string]): TimedSide[] {
  return over_time.flatMap((times, nth): TimedSide[] => (times ? [{ name: names[nth] ?? '', colour: `var(--series-${nth})`, dashed: nth === 1, times }] : []));
}

function points({ times }: TimedSide): Point[] {
  const seconds = times.slice_us / 1e6;
  return times.calls.map((calls, n) => ({ from: n * seconds, to: (n + 1) * seconds, x: (n + 0.5) * seconds, calls, us: times.mean_us[n] ?? null }));
}

/** The known points, with a break in every longer gap. */
function line(side: TimedSide): { x: number; us: number | null }[] {
  let last: number | null = null;
  return points(side).flatMap(({ x, us }, n) => {
    if (us === null) return [];
    const broken = last !== null && n - last > MAX_GAP;
    last = n;
    return broken ? [{ x, us: null }, { x, us }] : [{ x, us }];
  });
}

/** A sentence for those who do not see the chart: for each side, the means of its quarters. */
export function sentence(sides: TimedSide[]): string {
  return sides
    .map(({ name, times }) => {
      const size = Math.ceil(times.calls.length / 4);
      const quarters = [0, 1, 2, 3].map((nth) => {
        const slices = times.calls.slice(nth * size, (nth + 1) * size).map((calls, n) => ({ calls, us: times.mean_us[nth * size + n] ?? null })).filter(({ us }) => us !== null);
        const calls = slices.reduce((sum, slice) => sum + slice.calls, 0);
        return latency(calls > 0 ? slices.reduce((sum, slice) => sum + slice.calls * (slice.us ?? 0), 0) / calls : null);
      });
      return `${name}: ${quarters.join(', ')}`;
    })
    .join('; ');
}

const MARGINS = { marginLeft: 66, marginRight: 14 };
const STYLE = { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' };

/** Both charts, one above the other on the same axis. */
export function draw(sides: TimedSide[], width: number): Element[] {
  const end = Math.max(...sides.map(({ times }) => (times.slice_us * times.calls.length) / 1e6));
  const x = { domain: [0, end] };
  const at = timeTicks({ from: 0, to: end }, width < 480 ? 4 : 8);
  const known = sides.flatMap(({ times }) => times.mean_us.filter((us) => us !== null && us > 0)) as number[];
  const most = Math.max(1e-9, ...sides.flatMap(({ times }) => times.calls));
  // Means of several trials need not be whole.
  const calls = ticks(0, most, 2).filter((tick) => most < 1 || Number.isInteger(tick));
  // As they mostly are: both sides play the same trace.
  const isSame = sides.every(({ times }) => times.slice_us === sides[0]?.times.slice_us && times.calls.every((calls, n) => calls === sides[0]?.times.calls[n]));
  const charts: Element[] = [];
  if (known.length > 0) {
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const values = logTicks(low / 1.25, high * 1.25);
    charts.push(plot({
      ...MARGINS,
      width,
      height: 170,
      marginTop: 10,
      marginBottom: 8,
      style: STYLE,
      x: { ...x, axis: null },
      y: { type: 'log', domain: [low / 1.25, high * 1.25], axis: null },
      marks: [
        Plot.gridX(at, { stroke: 'var(--rule)', strokeOpacity: 1 }),
        Plot.gridY(values, { stroke: 'var(--rule)', strokeOpacity: 1 }),
        Plot.text(values, { y: (us: number) => us, text: (us: number) => tickLabel(us, 'µs'), frameAnchor: 'left', dx: -8, textAnchor: 'end' }),
        ...sides.flatMap((side) => [
          Plot.line(line(side), { x: 'x', y: 'us', stroke: side.colour, strokeWidth: 1.75, ...(side.dashed ? { strokeDasharray: '7 4' } : {}) }),
          Plot.dot(points(side).filter(({ us }) => us !== null), { x: 'x', y: 'us', r: 1.75, fill: side.colour }),
        ]),
      ],
    }));
  }
  charts.push(plot({
    ...MARGINS,
    width,
    height: 104,
    marginTop: 18,
    marginBottom: 40,
    style: STYLE,
    x: { ...x, ticks: at, tickFormat: (tick: number) => timeLabel(tick, { from: 0, to: end }), tickSize: 4, label: 'recorded time since the trace began', labelAnchor: 'center', labelArrow: 'none' },
    y: { domain: [0, most * 1.08], axis: null },
    marks: [
      Plot.text(['calls of a trial'], { frameAnchor: 'top-left', dy: -16, fill: 'var(--soft)' }),
      Plot.gridY(calls, { stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.text(calls, { y: (value: number) => value, text: (value: number) => inUnit(value, ''), frameAnchor: 'left', dx: -8, textAnchor: 'end' }),
      ...(isSame
        ? sides.slice(0, 1).map((side) => Plot.rect(points(side), { x1: 'from', x2: 'to', y1: 0, y2: 'calls', fill: 'var(--soft)', fillOpacity: 0.6 }))
        : sides.map((side) => Plot.line(points(side), { x: 'x', y: 'calls', curve: 'step', stroke: side.colour, strokeWidth: 1.5, ...(side.dashed ? { strokeDasharray: '7 4' } : {}) }))),
    ],
  }));
  return charts;
}

export function table(sides: TimedSide[]): Table {
  return {
    columns: [{ name: 'side', text: true }, { name: 'from (s)', show: (value) => inUnit(value, '') }, { name: 'to (s)', show: (value) => inUnit(value, '') }, { name: 'calls a trial', show: count }, { name: 'mean (µs)', show: latency }],
    rows: sides.flatMap((side) => points(side).filter(({ calls }) => calls > 0).map(({ from, to, calls, us }) => [side.name, from, to, calls, us])),
  };
}
