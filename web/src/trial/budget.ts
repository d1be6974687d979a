/** Components of a transaction's latency, of one trial or of two. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import { tickLabel } from './axis';
import { tint } from './lanes';
import type { Side } from './sides';
import type { ExplanationView } from '../data/generated/detail';

export interface Part {
  name: string;
  colour: string;
  /** Whether its colour is near the page's. */
  pale: boolean;
  /** For each explained trial, in µs per transaction; 0 if it has none. */
  us: number[];
}

/** Parts that are smaller in all trials are shown as one. */
const SMALL = 0.005;
const UNEXPLAINED = 'unexplained';

/** The parts of all trials, largest first, the unexplained part last. They add up to the mean latency. */
export function parts(explained: ExplanationView[]): Part[] {
  const found = new Map<string, { place: string; us: number[] }>();
  for (const [nth, { parts }] of explained.entries()) {
    for (const { place, of, us } of parts) {
      const name = of === null ? place : `${place} ${of}`;
      const part = found.get(name) ?? { place, us: explained.map(() => 0) };
      part.us[nth] = (part.us[nth] ?? 0) + us;
      found.set(name, part);
    }
  }
  const isSmall = ({ us }: { us: number[] }) => us.every((one, nth) => one < SMALL * (explained[nth]?.latency_us ?? 0));
  const known = [...found].filter(([, { place }]) => place !== UNEXPLAINED);
  const small = known.filter(([, part]) => isSmall(part));
  const large = known.filter(([, part]) => small.length < 2 || !isSmall(part)).toSorted(([, a], [, b]) => Math.max(...b.us) - Math.max(...a.us));
  const ofPlace = new Map<string, number>();
  const shown = large.map(([name, { place, us }]): Part => {
    const nth = ofPlace.get(place) ?? 0;
    ofPlace.set(place, nth + 1);
    return { name, colour: tint(colourOf(place), nth), pale: nth > 1, us };
  });
  const sum = (parts: [string, { us: number[] }][]) => explained.map((_, nth) => parts.reduce((sum, [, { us }]) => sum + (us[nth] ?? 0), 0));
  if (small.length > 1) shown.push({ name: `${small.length} smaller parts`, colour: 'color-mix(in oklab, var(--axis) 60%, var(--paper))', pale: true, us: sum(small) });
  const rest = [...found].filter(([, { place }]) => place === UNEXPLAINED);
  return [...shown, { name: UNEXPLAINED, colour: 'color-mix(in oklab, var(--axis) 30%, var(--paper))', pale: true, us: sum(rest) }];
}

export function draw(parts: Part[], explained: ExplanationView[], all: Side[], width: number): Element {
  const stacked = explained.flatMap((_, side) => {
    let from = 0;
    return parts.map(({ name, colour, pale, us }) => {
      // A negative part has no width; it is in the table.
      const x1 = from;
      from += Math.max(0, us[side] ?? 0);
      return { name, colour, pale, side, x1, x2: from };
    });
  });
  const most = Math.max(...stacked.map(({ x2 }) => x2), ...explained.map(({ latency_us }) => latency_us));
  const several = explained.length > 1;
  const marginLeft = several ? 26 : 4;
  const perPixel = most / (width - marginLeft - 14);
  const band = 40;
  const fits = stacked.filter(({ name, x1, x2 }) => (x2 - x1) / perPixel > 7 * name.length + 8);
  return plot({
    width,
    height: band * explained.length + 34,
    marginLeft,
    marginRight: 14,
    marginTop: 4,
    marginBottom: 30,
    style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    x: { domain: [0, most], ticks: Math.max(2, Math.floor(width / 110)), tickFormat: (us: number) => tickLabel(us, 'µs'), tickSize: 4, label: null },
    y: { type: 'band', domain: explained.map((_, nth) => nth), padding: 0.2, tickSize: 0, tickFormat: (nth: number) => (several ? (all[nth]?.name ?? '') : ''), label: null },
    marks: [
      Plot.barX(stacked, { x1: 'x1', x2: 'x2', y: 'side', fill: 'colour', stroke: 'var(--paper)', strokeWidth: 1 }),
      Plot.text(fits, { x: ({ x1, x2 }: { x1: number; x2: number }) => (x1 + x2) / 2, y: 'side', text: 'name', fill: ({ pale }: { pale: boolean }) => (pale ? 'var(--ink)' : 'var(--paper)') }),
      Plot.tickX(explained.map(({ latency_us }, side) => ({ latency_us, side })), { x: 'latency_us', y: 'side', stroke: 'var(--ink)', strokeWidth: 2 }),
    ],
  });
  // Its container describes it in a sentence.
}

/** Same colours as those of wait states. */
function colourOf(place: string): string {
  const known: Record<string, string> = {
    'server on CPU': 'var(--series-2)',
    'server waits for a CPU': 'var(--series-6)',
    lock: 'var(--series-1)',
    LWLock: 'var(--series-3)',
    'I/O': 'var(--series-0)',
    'WAL flush': 'var(--series-5)',
    wait: 'var(--series-4)',
    'driver CPU': 'var(--series-4)',
    'driver waits for a CPU': 'color-mix(in oklab, var(--series-4) 75%, var(--paper))',
    'driver lag': 'color-mix(in oklab, var(--series-4) 55%, var(--paper))',
  };
  return known[place] ?? 'var(--series-7)';
}
