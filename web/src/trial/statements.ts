/** Cost of a load's statements, per transaction. */

import type { Detail, Statement } from '../data/generated/detail';
import type { Side } from './sides';

export interface Row {
  query: string;
  /** For each trial: null if it did not run the statement. */
  of: (Statement | null)[];
  /** Execution time, in µs per transaction. */
  us: (number | null)[];
}

/** Statements by time per transaction, the most expensive of any trial first. */
export function rows(all: Side[]): Row[] {
  const transactions = all.map(({ detail }) => transactionsOf(detail));
  const queries = [...new Set(all.flatMap(({ detail }) => detail.statements.map(({ query }) => query)))];
  const found = queries.map((query) => {
    const of = all.map(({ detail }) => detail.statements.find((one) => one.query === query) ?? null);
    return { query, of, us: of.map((one, nth) => (one && transactions[nth] ? one.total_us / transactions[nth] : null)) };
  });
  const most = ({ us, of }: Row) => Math.max(...us.map((one, nth) => one ?? of[nth]?.total_us ?? 0));
  return found.toSorted((a, b) => most(b) - most(a));
}

/** Transactions of the whole load, which the statements cover, too. */
export function transactionsOf({ load }: Detail): number {
  return load.tps.reduce<number>((sum, tps, n) => sum + ((tps ?? 0) * (load.width_us[n] ?? 0)) / 1e6, 0);
}
