/**
 * Data of `pgdyno serve` other than the View, the Detail and the histories. Missing is null, never zero; `_us` is
 * microseconds; times are RFC 3339 in UTC. Errors of api/… are `{ error: string }`, status 401, 403, 404, 405 or 500.
 */

/** `api/runs`: every run with a trial in the store, and runs in progress; oldest first. */
export type Runs = RunHead[];

export interface RunHead {
  id: string;
  campaign: string;
  tags: string[];
  /** Whether it was imported. */
  imported: boolean;
  /** Start of its first trial (or of the run, if it is in progress and has no trial yet). */
  started: string | null;
  /** End of its last trial; null if it has none. A run in progress may end later. */
  ended: string | null;
  /** Its trials in the store. All 0 if it has none yet: then `api/runs/ID` is 404 until the first has ended. */
  valid: number;
  suspect: number;
  invalid: number;
  /** Whether a pgdyno is running it now. */
  running: boolean;
}

/**
 * `api/live` (server-sent events): every message is of the default type, `new EventSource('api/live').onmessage`, its
 * data one Message as JSON. Each connection begins with `hello`, followed by the state of each running campaign (`run`,
 * `trial_begins`, the intervals of its current trial, …) and by new events. Discard the known state on `hello`: after a
 * restart of the server, or if the client was too slow, all of it is sent again. EventSource reconnects by itself.
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
  /** ULIDs of the runs in progress, whose states follow. Empty if there are none. */
  running: string[];
}

/**
 * The head of a run's state. Discard the earlier state of this run: the head is sent again with each trial (and now and
 * then in a trial of many hours, followed by `trial_begins` and the latest intervals, at least half an hour of them).
 */
export interface Run {
  kind: 'run';
  /** Version of the live file. */
  format: number;
  campaign: string;
  pgdyno_version: string;
  /** Time at which this run began or was resumed. */
  begun: string;
  /** Number of planned trials, including those done; `trial_begins.of` may be more. */
  planned: number;
  /** In the campaign's order. */
  cells: LiveCell[];
}

export interface LiveCell {
  /** The cell in words. */
  cell: string;
  /** Number of planned trials. */
  planned: number;
  /** Numbers of its trials that had ended when this was written; each later `trial_ended` adds one. */
  valid: number;
  suspect: number;
  invalid: number;
}

/** A server is fetched, a data set is filled, or data are restored. */
export interface Preparing {
  kind: 'preparing';
  at: string;
  what: string;
  done: number;
  /** null if unknown. */
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
  /** Position in the order, from 1. */
  position: number;
  of: number;
  /** The cell in words. */
  cell: string;
  /** Index in `Run.cells`. */
  cell_index: number;
  repeat: number;
  attempt: number;
  /** Reason for a trial in addition to the plan; null for a planned trial. */
  reason: string | null;
  /** Estimated time of this and all later trials. */
  remaining_us: number;
  warmup_us: number;
  duration_us: number;
  /** Levels of the cell by factor, as campaigns write them. */
  levels: Record<string, string>;
  /** Its side, if it is measured in pairs. */
  side?: 'a' | 'b';
  /** The trial of the other side, which runs at the same time. */
  other?: TrialBegins;
}

/** About a second of the load. */
export interface Interval {
  kind: 'interval';
  /** After the load's start. */
  start_us: number;
  width_us: number;
  phase: 'warmup' | 'measure' | 'drain';
  tps: number;
  /** Number of failed transactions; null if unknown. */
  failed: number | null;
  /** null if no transaction ended. */
  p50_us: number | null;
  p95_us: number | null;
  p99_us: number | null;
  max_us: number | null;
  /** Activity of sessions in the interval; null without a sample. */
  waits: LiveWait[] | null;
  /** The side of the load, if it is measured in pairs. */
  side?: 'a' | 'b';
}

/** Same terms as in `Detail.waits`. */
export interface LiveWait {
  /** `load`, `beside`, `other`, or a server process. */
  session: string;
  /** `wait_event_type`, `CPU` if it was active and did not wait, or the state if it was not active. */
  type: string;
  event: string | null;
  /** Mean number of such sessions. */
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
  /** null if no load ran. */
  tps: number | null;
  /** Findings of the validity gates, if not valid. */
  reasons: string[];
}

/** No more messages of this run follow unless it is resumed. */
export interface Ended {
  kind: 'ended';
  at: string;
  /** `died`: its pgdyno was killed. */
  how: 'finished' | 'interrupted' | 'failed' | 'died';
  /** null without a reason. */
  why: string | null;
}

/** A new bundle in the store, of any run: fetched data of that run are out of date. */
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

/** `api/fleet`: the document of `pgdyno fleet status --format json`; null if no fleet is shown, 503 if it does not answer. */
export interface Fleet {
  /** Agents that answered, by name. */
  agents: FleetAgent[];
  /** Oldest first. */
  runs: FleetRun[];
}

export interface FleetAgent {
  facts: {
    name: string;
    pgdyno_version: string;
    labels: string[];
    machine: string;
    cpus: number | null;
    memory_bytes: number | null;
    kernel: string;
    /** Checks of `pgdyno doctor` that are not ok. */
    findings: string[];
  };
  state: 'idle' | { load: { agent: string; since: string } } | { running: { run: string; campaign: string; block: string; since: string; trials: number } };
  /** Whether it takes no more blocks, as it is being stopped. */
  is_draining: boolean;
  /** What it waits for, if it waits for the NATS server. */
  trouble: string | null;
}

/** A run, and the numbers of its blocks. */
export interface FleetRun {
  run: string;
  campaign: string;
  /** Host of its coordinator. */
  coordinator: string;
  waiting: number;
  running: { block: string; agent: string }[];
  complete: number;
  /** Blocks that ended too many attempts. */
  set_aside: { block: string; reasons: string[] }[];
  trials: number;
}
