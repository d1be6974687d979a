/** State of the running campaigns, from the messages so far. */

import type { Ended, Interval, LiveWait, Message, Notice, Preparing, Run, StoredTrial, TrialBegins, TrialEnded } from '../data/live';

/** States by run. */
export type Live = ReadonlyMap<string, RunState>;

/** The state before the first message of a connection. */
export const NOTHING: Live = new Map();

export interface RunState {
  head: Run;
  /** Current preparation; null once its trial's load runs. */
  preparing: Preparing | null;
  /** The latest notices, newest last. */
  notices: Notice[];
  /** The running trial; null before the first. */
  trial: TrialBegins | null;
  intervals: Interval[];
  /** The running session of a campaign in pairs: the trial and the last interval of each side. Empty for other campaigns. */
  sides: Side[];
  /** Trials that were stored since the page follows the run. */
  stored: StoredTrial[];
  /** Trials that ended since the head was written. */
  ended: TrialEnded[];
  /** End of the run; null while it runs. */
  end: Ended | null;
}

/** A side of the running session. */
export interface Side {
  trial: TrialBegins;
  /** null until its first slice of load is reported. */
  last: Interval | null;
}

/** A session that has ended with two usable trials. */
export interface Session {
  number: number;
  /** The variant's cell in words. */
  variant: string;
  /** Throughput of the variant over that of the baseline. */
  ratio: number;
}

/** Number of notices that are kept. */
const NOTICES = 5;

/** The state after a message. */
export function after(live: Live, { run, event }: Message): Live {
  if (event.kind === 'hello') return NOTHING;
  if (run === null) return live;
  if (event.kind === 'run') {
    const before = live.get(run);
    const fresh = { head: event, preparing: null, notices: before?.notices ?? [], trial: null, intervals: [], sides: [], stored: before?.stored ?? [], ended: [], end: null };
    return new Map([...live, [run, fresh]]);
  }
  const state = live.get(run);
  return state === undefined ? live : new Map([...live, [run, { ...state, ...changed(state, event) }]]);
}

function changed(state: RunState, event: Exclude<Message['event'], { kind: 'hello' | 'run' }>): Partial<RunState> {
  switch (event.kind) {
    case 'preparing':
      return { preparing: event };
    case 'notice':
      return { notices: [...state.notices.filter(({ at }) => at !== event.at), event].slice(-NOTICES) };
    case 'trial_begins':
      return { trial: event, intervals: [], sides: sides(state, event), preparing: null };
    case 'interval':
      // Loads in slices have no course over time to draw.
      if (event.side === undefined) return { intervals: [...state.intervals, event], preparing: null };
      return { sides: state.sides.map((side) => (side.trial.side === event.side ? { ...side, last: event } : side)), preparing: null };
    case 'trial_ended':
      return { ended: [...state.ended, event] };
    case 'ended':
      return { end: event };
    case 'trial':
      return { stored: [...state.stored, event] };
  }
}

/** The sides once a trial has begun. When both trials of a session have ended, that of B has an event of its own. */
function sides(state: RunState, trial: TrialBegins): Side[] {
  if (trial.other) return [trial, trial.other].map((of) => ({ trial: of, last: null }));
  return trial.side === undefined ? [] : state.sides;
}

/** The sessions of a campaign in pairs since the page follows it, in their order. The baseline's trial comes first. */
export function sessions({ stored }: RunState): Session[] {
  const usable = stored.filter(({ validity, tps }) => validity !== 'invalid' && tps !== null && tps > 0);
  const numbers = [...new Set(usable.map(({ repeat }) => repeat))].toSorted((a, b) => a - b);
  return numbers.flatMap((number) => {
    const [baseline, variant] = usable.filter(({ repeat }) => repeat === number).toSorted((a, b) => a.position - b.position);
    return baseline?.tps && variant?.tps ? [{ number, variant: variant.cell, ratio: variant.tps / baseline.tps }] : [];
  });
}

/** Number of a run's usable trials: invalid ones are tried again. */
export function done({ head, ended }: RunState): number {
  const usable = ended.filter(({ validity }) => validity !== 'invalid').length;
  return head.cells.reduce((sum, cell) => sum + cell.valid + cell.suspect, usable);
}

/** Remaining time of the campaign, from the runner's estimate at the start of the trial. */
export function remainingUs({ trial }: RunState, now: number): number | null {
  if (trial === null) return null;
  return Math.max(0, trial.remaining_us - (now - Date.parse(trial.at)) * 1000);
}

/** Mean numbers of clients' sessions by activity over the last seconds, the most frequent first. */
export function waiting(intervals: Interval[], seconds: number): LiveWait[] {
  const sampled = intervals.slice(-seconds).flatMap(({ waits }) => (waits === null ? [] : [waits]));
  const sums = new Map<string, LiveWait>();
  for (const wait of sampled.flat().filter(({ session }) => session === 'load' || session === 'beside')) {
    const key = JSON.stringify([wait.session, wait.type, wait.event]);
    const sessions = (sums.get(key)?.sessions ?? 0) + wait.sessions / sampled.length;
    sums.set(key, { ...wait, sessions });
  }
  return [...sums.values()].toSorted((a, b) => b.sessions - a.sessions);
}
