/** Panels that differ only in scale: their figure over the size of the data. */

import { bytes, count, share } from '../data/format';
import type { Panel, Point } from '../data/generated/view';

export interface Family {
  /** Common title. */
  title: string;
  /** What all of them are judged by. */
  figure: Panel['figure'];
  /** Ascending by scale. */
  panels: Sized[];
  /** Numbers of clients in any of them, ascending. */
  clients: number[];
}

export type Sized = Panel & { scale: number };

/** The families that have at least two scales. */
export function families(panels: Panel[]): Family[] {
  const sized = panels.flatMap((panel): Sized[] => (panel.scale === null ? [] : [{ ...panel, scale: panel.scale }]));
  const alike = Map.groupBy(sized, ({ workload, protocol, transport, conditions, figure }) => JSON.stringify([workload, protocol, transport, conditions, figure.metric]));
  return [...alike.values()]
    .filter((panels) => new Set(panels.map(({ scale }) => scale)).size > 1)
    .flatMap((panels) => (panels[0] ? [{
      figure: panels[0].figure,
      title: [panels[0].workload, ...panels[0].conditions].filter(Boolean).join(', ') || 'imported',
      panels: panels.toSorted((a, b) => a.scale - b.scale),
      clients: [...new Set(panels.flatMap(({ rows }) => rows.flatMap(({ clients }) => clients ?? [])))].sort((a, b) => a - b),
    }] : []));
}

/** The point of a panel's column at a number of clients. */
export function pointOf(panel: Panel, at: number, clients: number | null): Point | null {
  return panel.rows.find((row) => row.clients === clients)?.points[at] ?? null;
}

/** The point with the best mean, and its number of clients. */
export function best(panel: Panel, at: number): { point: Point; clients: number | null } | null {
  const known = panel.rows.flatMap(({ points, clients }) => {
    const point = points[at];
    return point && point.mean !== null ? [{ point, clients }] : [];
  });
  const sign = panel.figure.better === 'lower' ? 1 : -1;
  return known.toSorted((a, b) => sign * ((a.point.mean ?? 0) - (b.point.mean ?? 0)))[0] ?? null;
}

/** Size of the data, and its share of memory. */
export function size({ database_bytes, memory_bytes }: Panel): string[] {
  if (database_bytes === null) return [];
  return [bytes(database_bytes), ...(memory_bytes ? [`${share(database_bytes / memory_bytes)} of RAM`] : [])];
}

/** `scale 300`, and the size of the data. */
export function scaleOf(panel: Sized): string {
  const parts = size(panel);
  return `scale ${count(panel.scale)}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`;
}
