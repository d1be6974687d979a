/** Bars side by side, of one trial or of two, with their difference. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import type { Side } from './sides';
import { fixed } from '../data/format';

export interface Bar {
  name: string;
  colour: string;
  /** One value for each trial. */
  values: (number | null)[];
  labels: string[];
}

const ROW = 17;
const GAP = 7;

export function bars(rows: Bar[], all: Side[], width: number): Element {
  const narrow = width < 560;
  const marginLeft = narrow ? 12 : 240;
  const marginRight = all.length > 1 ? 70 : 14;
  const most = Math.max(...rows.flatMap(({ values }) => values.map((value) => value ?? 0)), 1e-9);
  // In a narrow chart names are above their bars.
  const head = narrow ? 15 : 0;
  const block = head + ROW * all.length + GAP;
  const flat = rows.flatMap((row, nth) => row.values.map((value, side) => ({ ...row, value: value ?? 0, side, y: nth * block + head + side * ROW, label: row.labels[side] ?? '' })));
  const differences = rows.flatMap(({ values: [one, other] }, nth) => (one == null || other == null || all.length < 2 ? [] : [{ y: nth * block + head + ROW, by: one - other }]));
  const room = (width - marginLeft - marginRight) / most;
  const fits = ({ value, label }: (typeof flat)[number]) => value * room + 7 * label.length + 10 < width - marginLeft - marginRight;
  const named = (nth: number) => nth * block + (narrow ? 8 : head + (ROW * all.length) / 2);
  return plot({
    width,
    height: rows.length * block + 4,
    marginLeft,
    marginRight,
    marginTop: 2,
    marginBottom: 2,
    style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    x: { domain: [0, most], axis: null },
    y: { domain: [0, rows.length * block], reverse: false, axis: null, range: [2, rows.length * block + 2] },
    marks: [
      Plot.rect(flat, {
        x1: 0, x2: 'value', y1: 'y', y2: ({ y }: { y: number }) => y + ROW - 3, fill: 'colour',
        fillOpacity: ({ side }: { side: number }) => (side === 0 ? 1 : 0.55),
      }),
      ...[true, false].map((outside) =>
        Plot.text(flat.filter((one) => fits(one) === outside), {
          x: 'value', y: ({ y }: { y: number }) => y + ROW / 2 - 1, dx: outside ? 5 : -5, textAnchor: outside ? 'start' : 'end',
          text: ({ label, side }: { label: string; side: number }) => (all.length > 1 ? `${all[side]?.name ?? ''} ${label}` : label),
          fill: 'var(--ink)', ...(outside ? {} : { stroke: 'var(--paper)', strokeWidth: 3, paintOrder: 'stroke' }),
        })),
      Plot.text(rows, {
        text: 'name', frameAnchor: 'left', x: 0, y: (_: Bar, nth: number) => named(nth), dx: narrow ? -10 : -8, textAnchor: narrow ? 'start' : 'end',
        lineWidth: narrow ? 28 : 19, textOverflow: 'ellipsis', fill: 'var(--ink)',
      }),
      Plot.text(differences, {
        frameAnchor: 'right', y: 'y', dx: marginRight - 4, textAnchor: 'end', fill: 'var(--soft)',
        text: ({ by }: { by: number }) => (Math.abs(by) < 0.005 ? '0' : `${by < 0 ? '−' : '+'}${fixed(Math.abs(by), 2)}`),
      }),
      ...(narrow ? [] : [Plot.ruleX([0], { stroke: 'var(--axis)' })]),
    ],
  });
  // Its container describes it in a sentence.
}
