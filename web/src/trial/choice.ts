/** The displayed trial, and the one it is compared with. */

import { counted } from '../data/format';
import { allTrials, title, distinguishing, type Placed } from '../data/trials';
import { formatSelection, type Selection } from '../data/url';
import type { Point, View } from '../data/generated/view';

export interface Cell {
  name: string;
  trials: Placed[];
}

/** All trials by cell, in the order of the overview. */
export function cells(view: View): Cell[] {
  const found = new Map<string, Cell>();
  for (const placed of allTrials(view)) {
    const key = JSON.stringify([view.panels.indexOf(placed.panel), placed.at, placed.clients]);
    const cell = found.get(key) ?? { name: [placed.column.label, title(placed.panel), ...distinguishing(placed.panel, view), placed.clients === null ? '' : counted(placed.clients, 'client')].filter(Boolean).join(', '), trials: [] };
    cell.trials.push(placed);
    found.set(key, cell);
  }
  return [...found.values()];
}

/** The trials shown if the address names none: one of the last cell, and one of the baseline's cell in the same row. */
export function proposed(view: View, has: (trial: string) => boolean): { trial: string | null; against: string | null } {
  const there = view.panels.toReversed().flatMap((panel) => panel.rows.toReversed().flatMap((row) =>
    row.points.map((point, at) => ({ row, at, trial: typical(point, has) })).toReversed().filter(({ trial }) => trial !== null)));
  // A file may not have every trial in detail.
  const last = there[0];
  if (!last) return { trial: allTrials(view).at(-1)?.trial.id ?? null, against: null };
  return { trial: last.trial, against: last.at === 0 ? null : typical(last.row.points[0] ?? null, has) };
}

/** The usable trial that is nearest to its cell's mean. */
function typical(point: Point | null, has: (trial: string) => boolean): string | null {
  const runs = (point?.runs ?? []).filter(({ id, figure, validity }) => figure !== null && validity !== 'invalid' && has(id));
  const away = (figure: number | null) => Math.abs((figure ?? 0) - (point?.mean ?? 0));
  return runs.toSorted((a, b) => away(a.figure) - away(b.figure))[0]?.id ?? null;
}

export function placedOf(view: View, id: string | null): Placed | null {
  return allTrials(view).find(({ trial }) => trial.id === id) ?? null;
}

/** Link to the flame graph of its cell, compared with the other's if there is one; null if it was not profiled. */
export function flamesOf(view: View, selection: Selection, placed: Placed, against: Placed | null): string | null {
  const of = (one: Placed | null) => view.profiles.findIndex(({ panel, clients, column }) => one !== null && view.panels[panel] === one.panel && clients === one.clients && column === one.at);
  const [profile, other] = [of(placed), of(against)];
  if (profile < 0) return null;
  const flame = { profile: String(profile), ...(other >= 0 && other !== profile ? { against: String(other) } : {}) };
  return `#${formatSelection({ ...selection, page: 'profiles', flame })}`;
}
