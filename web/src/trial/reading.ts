/** Values of lanes: at a moment, in a sentence, and as tables. */

import { inUnit, MISSING } from '../data/format';
import type { Cell, Table } from '../data/table';
import type { Lane, Line } from './lanes';
import type { Side } from './sides';
import type { Range, Track } from './timeline';

/** Names of a lane's lines, each once. */
export function namesOf({ lines }: Lane): string[] {
  return [...new Set(lines.map(({ name }) => name))];
}

/** Value of a line at a moment, with its range if it stands for several. */
export function valueAt(track: Track, moment: number, unit: string): string {
  const at = track.nearest(moment);
  if (at === null) return MISSING;
  const [low, high] = [track.low?.[at], track.high?.[at]];
  const value = inUnit(track.y[at] ?? null, unit);
  return low === undefined || high === undefined || Number.isNaN(low) || low === high ? value : `${value} (${inUnit(low, unit)} to ${inUnit(high, unit)})`;
}

/** Text alternative of a lane, in one sentence. */
export function sentence(lane: Lane, all: Side[], shown: Range): string {
  const parts = lane.lines.map((line) => {
    const extremes = line.track.extremes(shown);
    return `${nameOf(line, lane, all)} ${extremes ? `${inUnit(extremes[0], lane.unit)} to ${inUnit(extremes[1], lane.unit)}` : 'not known'}`;
  });
  return `${lane.title} over time: ${parts.join('; ')}.`;
}

export function nameOf({ name, side }: Line, { title }: Lane, all: Side[]): string {
  const whose = all.length > 1 ? (all[side]?.name ?? '') : '';
  return [whose, name === title ? '' : name].filter(Boolean).join(' ') || name;
}

/** The values of a lane in a time range. */
export function tableOf(lane: Lane, all: Side[], { from, to }: Range): Table {
  const names = namesOf(lane);
  const enveloped = names.filter((name) => lane.lines.some((line) => line.name === name && line.track.low));
  const columns = names.flatMap((name) => [name, ...(enveloped.includes(name) ? [`${name}, least`, `${name}, greatest`] : [])]);
  const rows: Cell[][] = [];
  for (const [side, { name }] of all.entries()) {
    const at = new Map<number, (number | null)[]>();
    for (const line of lane.lines.filter((line) => line.side === side)) {
      const { x, y, low, high } = line.track;
      const put = (nth: number, column: string, values: Float64Array | null) => {
        const time = Number((x[nth] ?? 0).toFixed(6));
        const row = at.get(time) ?? columns.map(() => null);
        const value = values?.[nth] ?? NaN;
        row[columns.indexOf(column)] = Number.isNaN(value) ? null : value;
        at.set(time, row);
      };
      for (let nth = line.track.from(from); nth < x.length && (x[nth] ?? Infinity) <= to; nth += 1) {
        put(nth, line.name, y);
        if (low) put(nth, `${line.name}, least`, low);
        if (high) put(nth, `${line.name}, greatest`, high);
      }
    }
    for (const [time, values] of [...at].toSorted(([a], [b]) => a - b)) rows.push([...(all.length > 1 ? [name] : []), time, ...values]);
  }
  const show = (value: number | null) => inUnit(value, lane.unit);
  return {
    columns: [
      ...(all.length > 1 ? [{ name: 'trial', text: true }] : []),
      { name: 'time (s)' },
      ...columns.map((name) => ({ name: lane.unit === '' || name === lane.unit ? name : `${name} (${lane.unit})`, show })),
    ],
    rows,
  };
}
