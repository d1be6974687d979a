/** Events during the load, in lanes. */

import { seconds, type Side } from './sides';
import type { Range } from './timeline';
import type { Event } from '../data/generated/detail';

export interface TimedEvent {
  event: Event;
  /** Index of its trial. */
  side: number;
  from: number;
  /** Same as `from` if it has no length. */
  to: number;
}

export const KINDS: Event['lane'][] = ['checkpoint', 'vacuum', 'error', 'other'];

/** All events of the trials, in order of time. */
export function eventsOf(all: Side[]): TimedEvent[] {
  const found = all.flatMap((side, nth) =>
    side.detail.events.map((event) => ({ event, side: nth, from: seconds(event.start_us, side), to: seconds(event.end_us ?? event.start_us, side) })));
  return found.toSorted((a, b) => a.from - b.from);
}

export function isIn({ from, to }: TimedEvent, shown: Range): boolean {
  return to >= shown.from && from <= shown.to;
}

/** The event of a lane nearest to a time; null if none is within `within` seconds. */
export function nearest(events: TimedEvent[], time: number, within: number): TimedEvent | null {
  const away = ({ from, to }: TimedEvent) => Math.max(from - time, time - to, 0);
  const first = events.toSorted((a, b) => away(a) - away(b) || a.to - a.from - (b.to - b.from))[0];
  return first && away(first) <= within ? first : null;
}
