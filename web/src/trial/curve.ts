/** The distribution of latencies by percentile, with its tail stretched. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import { logTicks, tickLabel } from './axis';
import type { Side } from './sides';
import { LOCALE, latency } from '../data/format';
import type { Curve } from '../data/generated/detail';
import type { Table } from '../data/table';

export interface Drawn {
  side: Pick<Side, 'name' | 'colour'>;
  kind: 'intended' | 'service';
  curve: Curve;
}

/** Percentiles that are shown as figures. */
export const SHOWN_PERCENTILES = [0.5, 0.9, 0.99, 0.999, 0.9999, 1];

/** All curves; service time only if it differs. */
export function curves(all: Side[]): Drawn[] {
  return all.flatMap((side) =>
    (['intended', 'service'] as const).flatMap((kind): Drawn[] => {
      const curve = side.detail[kind];
      return curve && curve.q.length > 0 ? [{ side, kind, curve }] : [];
    }),
  );
}

/** The smallest value that this share of all does not exceed; null if there are too few values. */
export function at({ q, us, count }: Curve, share: number): number | null {
  if (share < 1 && (1 - share) * count < 1) return null;
  return us[q.findIndex((one) => one >= share - 1e-12)] ?? null;
}

export function percentile(share: number): string {
  return share === 1 ? 'max' : `p${(share * 100).toLocaleString(LOCALE, { maximumFractionDigits: 4 })}`;
}

export function draw(drawn: Drawn[], width: number, height: number, what = 'transactions'): Element {
  // The largest of n values is drawn at one in n.
  const rarest = Math.max(10, ...drawn.map(({ curve }) => curve.count));
  const points = drawn.flatMap(({ side, kind, curve }) =>
    curve.q.map((q, n) => ({ series: `${side.name} ${kind}`, x: Math.min(1 / Math.max(1 - q, 1e-12), curve.count), us: curve.us[n] ?? 0 })).filter(({ us }) => us > 0));
  const ticks = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((tick) => tick <= rarest);
  const values = logTicks(Math.min(...points.map(({ us }) => us)), Math.max(...points.map(({ us }) => us)));
  const of = (series: string) => points.filter((point) => point.series === series);
  return plot({
    width,
    height,
    marginLeft: 66,
    marginRight: 14,
    marginTop: 10,
    marginBottom: 40,
    style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    x: {
      type: 'log',
      domain: [1, rarest],
      ticks: width < 480 ? ticks.filter((tick) => tick !== 1) : ticks,
      tickFormat: (tick: number) => (1 - 1 / tick).toLocaleString(LOCALE, { style: 'percent', maximumFractionDigits: 5 }),
      tickSize: 4,
      label: `share of ${what} that were faster`,
      labelAnchor: 'center',
      labelArrow: 'none',
    },
    y: { type: 'log', axis: null },
    marks: [
      Plot.gridX(ticks, { stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.gridY(values, { stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.text(values, { y: (us: number) => us, text: (us: number) => tickLabel(us, 'µs'), frameAnchor: 'left', dx: -8, textAnchor: 'end' }),
      ...drawn.map(({ side, kind }) =>
        Plot.line(of(`${side.name} ${kind}`), {
          x: 'x',
          y: 'us',
          stroke: side.colour,
          strokeWidth: kind === 'service' ? 1.25 : 2.25,
          strokeOpacity: kind === 'service' ? 0.75 : 1,
          ...(side.name === 'B' ? { strokeDasharray: '7 4' } : {}),
        })),
    ],
  });
  // Its container describes it in a sentence.
}

export function table(drawn: Drawn[]): Table {
  return {
    columns: [{ name: 'trial', text: true }, { name: 'from', text: true }, { name: 'share of transactions' }, { name: 'latency (µs)', show: latency }],
    rows: drawn.flatMap(({ side, kind, curve }) => curve.q.map((q, n) => [side.name, `${kind} start`, q, curve.us[n] ?? null])),
  };
}
