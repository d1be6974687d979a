/** Colour and mark of a column, the same in every chart, table and legend, regardless of hidden columns. */

const COLOURS = 8;
const SYMBOLS = ['circle', 'square', 'triangle', 'diamond', 'star', 'cross', 'wye'] as const;
export type Symbol = (typeof SYMBOLS)[number];

/** `at` is the column's index. */
export function colour(at: number): string {
  return `var(--series-${at % COLOURS})`;
}

/** Marks and lines distinguish columns of the same colour. */
export function symbol(at: number): Symbol {
  return SYMBOLS[at % SYMBOLS.length] ?? 'circle';
}

/** Dash pattern of its line; `none` for the first of each colour. */
export function dash(at: number): string {
  return ['none', '6 3', '2 3', '8 3 2 3'][Math.floor(at / COLOURS) % 4] ?? 'none';
}
