/** Figures as a table: the data of a chart, and of its copies. */

export interface Table {
  columns: Heading[];
  /** One raw value for each column; `show` formats them. */
  rows: Cell[][];
}

export interface Heading {
  /** With the unit at its end, as in the header of a file: `latency p99 (µs)`. */
  name: string;
  /** Format of its values; raw if it is missing. */
  show?: (value: number | null) => string;
  /** Whether its values are texts, which are left-aligned. */
  text?: boolean;
}

export type Cell = string | number | null;

/** RFC 4180, in full precision; a missing value is empty. */
export function csv({ columns, rows }: Table): string {
  const field = (value: Cell) => {
    const text = value === null ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(field).join(',') + '\r\n').join('');
}
