/** The displayed trials: one, or two that are compared. */

import type { Placed } from '../data/trials';
import type { Detail } from '../data/generated/detail';

export interface Side {
  /** Its name if there are two. */
  name: 'A' | 'B';
  placed: Placed;
  detail: Detail;
  /** CSS colour. The second trial is dashed as well. */
  colour: string;
  /** Shift in seconds that aligns the starts of both measured windows. */
  offset: number;
}

export function sides(first: Shown, second: Shown | null): Side[] {
  const colours = coloursOf(first.placed, second?.placed ?? null);
  const start = first.detail.window?.start_us;
  return [first, second].flatMap((one, nth): Side[] => {
    const other = one?.detail.window?.start_us;
    const offset = start === undefined || other === undefined ? 0 : (start - other) / 1e6;
    return one ? [{ ...one, name: nth === 0 ? 'A' : 'B', colour: colours[nth] ?? '', offset }] : [];
  });
}

export type Shown = Pick<Side, 'placed' | 'detail'>;

/** Colours of their columns; if both have one column, the second has the next column's. */
export function coloursOf(first: Placed, second: Placed | null): string[] {
  const at = second?.at === first.at ? first.at + 1 : (second?.at ?? 0);
  return [first.at, at].map((column) => `var(--series-${column % 8})`);
}

/** A time of a trial in seconds, aligned with the other trial. */
export function seconds(us: number, { offset }: Side): number {
  return us / 1e6 + offset;
}
