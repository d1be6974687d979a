/** What the sessions of a statement waited for, on two sides. */

import { MISSING } from '../data/format';
import type { PlayedStatement } from '../data/generated/view';
import type { Table } from '../data/table';

/** A wait on both sides. */
export interface WaitRow {
  wait: string;
  /** Samples of each side; null without any of the statement. */
  samples: (number | null)[];
  /** The same as shares of all samples of the side. */
  shares: (number | null)[];
}

/** Sides, of which a statement has none if its waits are unknown. */
const SIDES = [0, 1] as const;

/** All waits of either side, those with the largest share first. */
export function waitRows({ waits }: PlayedStatement): WaitRow[] {
  const names = [...new Set(waits.flatMap((side) => side ?? []).map(({ wait }) => wait))];
  const rows = names.map((wait): WaitRow => {
    const of = SIDES.map((side) => {
      const known = waits[side];
      return known && known.length > 0 ? (known.find((one) => one.wait === wait) ?? { samples: 0, share: 0 }) : null;
    });
    return { wait, samples: of.map((one) => one?.samples ?? null), shares: of.map((one) => one?.share ?? null) };
  });
  const most = ({ shares }: WaitRow) => Math.max(...shares.map((share) => share ?? 0));
  return rows.toSorted((a, b) => most(b) - most(a));
}

/** Samples of the statement on each side; null if unknown. */
export function sampled({ waits }: PlayedStatement): (number | null)[] {
  return SIDES.map((side) => waits[side]?.reduce((sum, { samples }) => sum + samples, 0) ?? null);
}

/** The change of a share in percentage points: `+12`, `−3`. */
export function points([before, after]: (number | null)[]): string {
  if (before == null || after == null) return MISSING;
  const points = Math.round(100 * (after - before));
  return points === 0 ? '0' : `${points < 0 ? '−' : '+'}${Math.abs(points)}`;
}

export function waitsTable(one: PlayedStatement, names: [string, string]): Table {
  return {
    columns: ['wait', ...names.flatMap((name) => [`samples of ${name}`, `share of ${name}`])].map((name) => ({ name })),
    rows: waitRows(one).map(({ wait, samples, shares }) => [wait, ...SIDES.flatMap((side) => [samples[side] ?? null, shares[side] ?? null])]),
  };
}
