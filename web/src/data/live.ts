/**
 * What `pgdyno serve` serves in addition to the View, the Detail and the histories. Missing is null, never zero; `_us` is
 * microseconds; times are RFC 3339 in UTC. Errors of api/… are `{ error: string }` with status 401, 403, 404, 405 or 500.
 */

/** `api/runs`: every run with a trial in the store, and those that run now; the oldest first. */
export type Runs = RunHead[];

export interface RunHead {
  id: string;
  campaign: string;
  tags: string[];
  /** Whether it was imported. */
  imported: boolean;
  /** When its first trial began (for one that runs and has none yet: when it was begun). */
  started: string | null;
  /** When its last trial ended; null while it has none. A run that runs now may end later. */
  ended: string | null;
  /** Its trials in the store. All 0 where it runs and has none yet: then `api/runs/ID` is 404 until the first has ended. */
  valid: number;
  suspect: number;
  invalid: number;
  /** Whether a pgdyno is running it now. */
  running: boolean;
}

/**
 * `api/live` (server-sent events): every message is of the default type, `new EventSource('api/live').onmessage`, its data
 * one Message as JSON. Each connection begins with `hello`; then comes the state so far of each running campaign (`run`,
 * `trial_begins`, the intervals of its present trial, …), then whatever happens. On `hello` forget what was known: a server
 * that was started anew, or a client that was too slow, gets it all again. EventSource connects again by itself.
 */
export interface Message {
  /** ULID of the run; null in `hello`. */
  run: string | null;
  event: LiveEvent;
}

export type LiveEvent =
  | Hello
  | Run
  | Preparing
  | Notice
  | TrialBegins
  | Interval
  | TrialEnded
  | Ended
  | StoredTrial;

/** The first message of each connection. */
export interface Hello {
  kind: 'hello';
  /** ULIDs of the runs that run now: each one's state follows. Empty where nothing runs. */
  running: string[];
}

/**
 * The head of a run's state. Forget what came before of this run: it comes anew with each trial (and in a trial of many
 * hours now and then, followed by `trial_begins` and the latest intervals, at least half an hour of them).
 */
export interface Run {
  kind: 'run';
  /** Version of the live file. */
  format: number;
  campaign: string;
  pgdyno_version: string;
  /** When this run was begun or resumed. */
  begun: string;
  /** Number of trials that are planned, those done included; `trial_begins.of` may be more. */
  planned: number;
  /** In the campaign's order. */
  cells: LiveCell[];
}

export interface LiveCell {
  /** In words. */
  cell: string;
  /** Trials that are planned. */
  planned: number;
  /** Its trials that had ended when this was written; each later `trial_ended` is one more. */
  valid: number;
  suspect: number;
  invalid: number;
}

/** A server is fetched, a data set is filled, data are put back. */
export interface Preparing {
  kind: 'preparing';
  at: string;
  what: string;
  done: number;
  /** null where it is not known. */
  total: number | null;
}

export interface Notice {
  kind: 'notice';
  at: string;
  text: string;
}

/** From here to the first interval the server and its data are prepared. */
export interface TrialBegins {
  kind: 'trial_begins';
  at: string;
  /** Its place in the order, from 1. */
  position: number;
  of: number;
  /** In words. */
  cell: string;
  /** Its place in `Run.cells`. */
  cell_index: number;
  repeat: number;
  attempt: number;
  /** Why it is run beyond what was planned; null where it was planned. */
  reason: string | null;
  /** About how long this and the trials after it will take. */
  remaining_us: number;
  warmup_us: number;
  duration_us: number;
}

/** About a second of the load. */
export interface Interval {
  kind: 'interval';
  /** After the load's start. */
  start_us: number;
  width_us: number;
  phase: 'warmup' | 'measure' | 'drain';
  tps: number;
  /** Transactions that failed; null where it is not known. */
  failed: number | null;
  /** null where no transaction ended. */
  p50_us: number | null;
  p95_us: number | null;
  p99_us: number | null;
  max_us: number | null;
  /** What sessions were doing meanwhile; null without a sample. */
  waits: LiveWait[] | null;
}

/** The same words as in `Detail.waits`. */
export interface LiveWait {
  /** `load`, `beside`, `other`, or a server process. */
  session: string;
  /** `wait_event_type`, `CPU` where it was active and did not wait, or the state where it was not active. */
  type: string;
  event: string | null;
  /** Mean number of sessions that did so. */
  sessions: number;
}

export interface TrialEnded {
  kind: 'trial_ended';
  at: string;
  /** Its ULID. */
  id: string;
  position: number;
  cell_index: number;
  repeat: number;
  attempt: number;
  validity: 'valid' | 'suspect' | 'invalid';
  /** null where no load ran. */
  tps: number | null;
  /** What validity gates found against it. */
  reasons: string[];
}

/** Nothing more comes of this run until somebody resumes it. */
export interface Ended {
  kind: 'ended';
  at: string;
  /** `died`: its pgdyno was killed. */
  how: 'finished' | 'interrupted' | 'failed' | 'died';
  /** null where there is nothing to say. */
  why: string | null;
}

/** A bundle has appeared in the store, of whichever run: what was fetched of that run is out of date. */
export interface StoredTrial {
  kind: 'trial';
  id: string;
  campaign: string;
  cell: string;
  position: number;
  repeat: number;
  attempt: number;
  validity: 'valid' | 'suspect' | 'invalid';
  tps: number | null;
  started: string | null;
  ended: string | null;
}
