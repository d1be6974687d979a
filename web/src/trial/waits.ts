/** Wait states of sessions: number of sessions at any time, and mean over any range. */

import { firstAtOrAfter, type Range } from './timeline';
import type { Side } from './sides';
import { tint } from './lanes';
import type { Waits, WaitSeries } from '../data/generated/detail';

/** A wait state of the sessions of one kind. */
export interface State {
  key: string;
  name: string;
  /** Whether its sessions are those of clients. */
  clients: boolean;
  colour: string;
}

/** Sessions over time, with the mean of any range. */
export class SessionSamples {
  readonly keys: string[];
  private readonly starts: number[];
  private readonly ends: number[];
  /** Seconds with samples, up to the start of each span. */
  private readonly known: number[];
  /** By state, its session-seconds up to the start of each span. */
  private readonly sums: number[][];
  private readonly series: WaitSeries[];

  constructor(waits: Waits, offset: number) {
    this.series = waits.series;
    this.keys = waits.series.map(keyOf);
    this.starts = waits.start_us.map((us) => us / 1e6 + offset);
    this.ends = waits.width_us.map((us, n) => us / 1e6 + (this.starts[n] ?? 0));
    const widths = this.ends.map((end, n) => end - (this.starts[n] ?? 0));
    const summed = (of: (n: number) => number) => {
      let sum = 0;
      return widths.map((width, n) => (sum += width * of(n)) - width * of(n));
    };
    this.known = summed(() => 1);
    this.sums = waits.series.map(({ sessions }) => summed((n) => sessions[n] ?? 0));
  }

  /** Mean sessions in a state in a time range; null without samples. A state that was never seen is 0. */
  mean(key: string, { from, to }: Range): number | null {
    const sampled = this.upTo(this.known, () => 1, to) - this.upTo(this.known, () => 1, from);
    if (!(sampled > 0)) return null;
    const at = this.keys.indexOf(key);
    const [sums, sessions] = [this.sums[at], this.series[at]?.sessions];
    if (!sums || !sessions) return 0;
    const of = (n: number) => sessions[n] ?? 0;
    return Math.max(0, this.upTo(sums, of, to) - this.upTo(sums, of, from)) / sampled;
  }

  /** Mean sessions in each of these states in each of `parts` equal parts of a range; NaN without samples. */
  columns(keys: string[], { from, to }: Range, parts: number): number[][] {
    const times = Array.from({ length: parts + 1 }, (_, n) => from + (n * (to - from)) / parts);
    // The last span that has begun at each time, and its elapsed part.
    const spans = times.map((time) => firstAtOrAfter(this.starts, time) - 1);
    const over = times.map((time, n) => Math.min(time, this.ends[spans[n] ?? -1] ?? time) - (this.starts[spans[n] ?? -1] ?? time));
    const known = times.map((_, n) => (this.known[spans[n] ?? -1] ?? 0) + (over[n] ?? 0));
    return keys.map((key) => {
      const at = this.keys.indexOf(key);
      const [sums, sessions] = [this.sums[at] ?? [], this.series[at]?.sessions ?? []];
      const upTo = times.map((_, n) => (sums[spans[n] ?? -1] ?? 0) + (over[n] ?? 0) * (sessions[spans[n] ?? -1] ?? 0));
      return Array.from({ length: parts }, (_, n) => {
        const sampled = (known[n + 1] ?? 0) - (known[n] ?? 0);
        return sampled > 0 ? Math.max(0, (upTo[n + 1] ?? 0) - (upTo[n] ?? 0)) / sampled : NaN;
      });
    });
  }

  /** Sessions in a state at a moment; null without a sample then. */
  at(key: string, moment: number): number | null {
    const span = firstAtOrAfter(this.starts, moment + 1e-9) - 1;
    if (span < 0 || moment > (this.ends[span] ?? -Infinity)) return null;
    return this.series[this.keys.indexOf(key)]?.sessions[span] ?? 0;
  }

  private upTo(sums: number[], rate: (n: number) => number, time: number): number {
    const at = firstAtOrAfter(this.starts, time) - 1;
    if (at < 0) return 0;
    const within = Math.min(time, this.ends[at] ?? time) - (this.starts[at] ?? time);
    return (sums[at] ?? 0) + within * rate(at);
  }
}

/** Kinds of clients' sessions. */
const CLIENTS = ['load', 'beside'];
/** Wait event type of idle server processes. */
const FOR_WORK = 'Activity';
/** Most states that are named in a chart. */
const NAMED = 9;
export const REST: State = { key: 'rest', name: 'other states', clients: true, colour: 'color-mix(in oklab, var(--axis) 45%, var(--paper))' };

export function sessionSamples(all: Side[]): (SessionSamples | null)[] {
  return all.map(({ detail, offset }) => detail.waits && new SessionSamples(detail.waits, offset));
}

/** Every state except waiting for work: the most frequent first, idle ones last. */
export function states(all: Side[], samples: (SessionSamples | null)[], window: Range): State[] {
  const found = new Map<string, { series: WaitSeries; weight: number }>();
  for (const [nth, { detail }] of all.entries()) {
    for (const series of detail.waits?.series ?? []) {
      if (series.type === FOR_WORK) continue;
      const key = keyOf(series);
      const weight = Math.max(found.get(key)?.weight ?? 0, samples[nth]?.mean(key, window) ?? 0);
      found.set(key, { series, weight });
    }
  }
  const isIdle = ({ type }: WaitSeries) => type.startsWith('idle');
  const ranked = [...found].toSorted(([, a], [, b]) => Number(isIdle(a.series)) - Number(isIdle(b.series)) || b.weight - a.weight);
  const ofType = new Map<string, number>();
  return ranked.map(([key, { series }]) => {
    const nth = ofType.get(series.type) ?? 0;
    ofType.set(series.type, nth + 1);
    const name = [series.type, series.event].filter((part) => part !== null).join(' ');
    return {
      key,
      name: series.session === 'load' ? name : `${series.session}: ${name}`,
      clients: CLIENTS.includes(series.session),
      colour: tint(colourOf(series.type), nth),
    };
  });
}

/** The states of clients that a chart shows one by one, and those that it shows together. */
export function layers(states: State[]): { named: State[]; rest: State[] } {
  const clients = states.filter((state) => state.clients);
  if (clients.length <= NAMED + 1) return { named: clients, rest: [] };
  return { named: clients.slice(0, NAMED), rest: clients.slice(NAMED) };
}

/** Colour of a type, the same in every trial. */
export function colourOf(type: string): string {
  const known: Record<string, string> = {
    CPU: 'var(--series-2)',
    Lock: 'var(--series-1)',
    LWLock: 'var(--series-3)',
    IO: 'var(--series-0)',
    IPC: 'var(--series-5)',
    Client: 'var(--series-6)',
    Timeout: 'var(--series-4)',
    BufferPin: 'var(--series-4)',
    'idle in transaction': 'var(--series-7)',
  };
  return known[type] ?? (type.startsWith('idle') ? 'color-mix(in oklab, var(--axis) 28%, var(--paper))' : 'var(--series-7)');
}

function keyOf({ session, type, event }: WaitSeries): string {
  return [session, type, event ?? ''].join('\t');
}
