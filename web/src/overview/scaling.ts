/** The scaling sweep: a figure over the size of the data. */

import { size, type Family } from './scales';
import { sweep, type Chart } from './sweep';
import { count } from '../data/format';
import type { Column, Point } from '../data/generated/view';

export interface AtScale {
  panel: Family['panels'][number];
  point: Point;
  clients: number | null;
}

/** `series` has the points of each column; `hidden` are the indices of hidden columns. */
export function overScales(family: Family, series: AtScale[][], columns: Column[], hidden: Set<number>, width: number): Chart {
  const scales = family.panels.map(({ scale }) => scale);
  const tick = (scale: number) => {
    const panel = family.panels.find((panel) => panel.scale === scale);
    return [count(scale), ...(panel ? size(panel) : [])].join('\n');
  };
  const found = (at: number, scale: number) => series[at]?.find(({ panel }) => panel.scale === scale);
  const sized = family.panels.some((panel) => size(panel).length > 0);
  return sweep(
    {
      levels: scales,
      shown: columns.map((_, at) => at).filter((at) => !hidden.has(at) && (series[at]?.length ?? 0) > 0),
      point: (at, scale) => found(at, scale)?.point ?? null,
      trials: columns.flatMap((column, at) =>
        (series[at] ?? []).flatMap(({ panel, point, clients }) => point.runs.map((trial) => ({ trial, panel, clients, column, at, level: panel.scale }))),
      ),
      axis: { label: sized ? 'scale, size of the database' : 'scale', tick, lines: Math.max(...scales.map((scale) => tick(scale).split('\n').length)) },
      figure: family.figure,
    },
    width,
  );
}
