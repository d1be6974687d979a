/** The statements of a trace on two sides: those that match, in an order. */

import type { PlayedStatement, Statements } from '../data/generated/view';

/** Orders of the rows; by part of the whole change is the default. */
export const ORDERS = ['statement', 'calls', 'before', 'after', 'change', 'share', 'verdict'] as const;
export type Order = (typeof ORDERS)[number];

/** By importance. */
const VERDICTS = ['REGRESSION', 'IMPROVEMENT', 'INCONCLUSIVE', 'EQUIVALENT', 'INSUFFICIENT'];

/** Statements whose text, fingerprint, verdict, plans or errors contain a text. */
export function matching({ statements }: Statements, find: string): PlayedStatement[] {
  const text = find.toLowerCase();
  const words = ({ text, fingerprint, verdict, plans, new_failures }: PlayedStatement) => [text, fingerprint, verdict, ...plans.flat(), ...new_failures];
  return statements.filter((one) => words(one).join('\n').toLowerCase().includes(text));
}

/** The rows in an order, descending if it begins with `-`; what is unknown comes last. */
export function ordered(rows: PlayedStatement[], sort: string | undefined): PlayedStatement[] {
  const by = ORDERS.find((order) => order === sort?.replace(/^-/, ''));
  if (!by) return rows;
  const sign = sort?.startsWith('-') ? -1 : 1;
  const compare = (a: string | number | null, b: string | number | null) => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (typeof a === 'string' || typeof b === 'string' ? String(a).localeCompare(String(b)) : a - b);
  };
  return rows.toSorted((a, b) => compare(value(a, by), value(b, by)));
}

function value(of: PlayedStatement, by: Order): string | number | null {
  switch (by) {
    case 'statement': return of.text;
    case 'calls': return of.calls[1];
    case 'before': return of.mean_us[0];
    case 'after': return of.mean_us[1];
    case 'change': return of.change;
    case 'share': return of.share;
    case 'verdict': return VERDICTS.indexOf(of.verdict);
  }
}

/** The kind of mark of a verdict. */
export function mark(verdict: string): 'worse' | 'better' | 'same' | 'open' {
  return verdict === 'REGRESSION' ? 'worse' : verdict === 'IMPROVEMENT' ? 'better' : verdict === 'EQUIVALENT' ? 'same' : 'open';
}

/** How a plan changed, in words. */
export function changes({ plan_changes }: PlayedStatement): string {
  return plan_changes.map(({ before, after }) => (before === null ? `added ${after ?? ''}` : after === null ? `without ${before}` : `${before} → ${after}`)).join('; ');
}
