/** Figures as a table: what stands behind a chart, and what is copied from it. */

export interface Table {
  columns: Heading[];
  /** One value for each column; as they are, for `show` makes them legible. */
  rows: Cell[][];
}

export interface Heading {
  /** With the unit at its end, as a column of a file is called: `latency p99 (µs)`. */
  name: string;
  /** How its values are shown; as they are where it is missing. */
  show?: (value: number | null) => string;
  /** Whether its values are texts, which stand on the left. */
  text?: boolean;
}

export type Cell = string | number | null;

/** RFC 4180, in full precision; what is missing is empty. */
export function csv({ columns, rows }: Table): string {
  const field = (value: Cell) => {
    const text = value === null ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(field).join(',') + '\r\n').join('');
}
