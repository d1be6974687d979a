/**
 * One trial in all its detail: what the pages about a trial, or about two of them side by side, are drawn from. The same
 * as crates/analysis/src/trial.rs, where every field is explained. Times are in microseconds after the load's start, or
 * after the trial's where no load ran; missing is null, never zero. Figures have five significant digits.
 */

export interface Detail {
  schema: number;
  id: string;
  /** The cell in words. */
  cell: string;
  /** The measured window; null where no load ran. */
  window: Span | null;
  /** Command that measures its cell again: `pgdyno run CAMPAIGN.toml --set …`. null where it was imported, or where its
   * campaign can't be narrowed to the cell by `--set`. */
  rerun: string | null;
  load: Load;
  heat: Heat | null;
  /** Of the measured window; empty curves are null. `service` is null in a closed loop. */
  intended: Curve | null;
  service: Curve | null;
  /** Times at which metrics are given, shared by those that were read together. */
  clocks: number[][];
  /** The driver's own (`driver.busy_share`, …) first. */
  metrics: Metric[];
  /** How many metrics are not here, for they were nothing but zero or null. Always 0 where nothing is thinned. */
  left_out: number;
  /** In order of their start; some are before the load. */
  events: Event[];
  waits: Waits | null;
  statements: Statement[];
  /** Where the time goes; null where it can't be said, and then `unexplained` says why. */
  explained: Explained | null;
  unexplained: string | null;
}

export interface Span {
  start_us: number;
  end_us: number;
}

/** By interval of the load, or by several of them (never of two phases) where it was thinned; all arrays are equally long. */
export interface Load {
  start_us: number[];
  width_us: number[];
  tps: (number | null)[];
  /** The slowest and fastest interval of those that were put together; null where none were. */
  tps_low: (number | null)[] | null;
  tps_high: (number | null)[] | null;
  failed: (number | null)[];
  p50_us: (number | null)[];
  p95_us: (number | null)[];
  p99_us: (number | null)[];
  max_us: (number | null)[];
}

/** How many transactions took how long, over time: `counts[column][row]`, rows between neighbouring `edges_us`. */
export interface Heat {
  edges_us: number[];
  start_us: number[];
  width_us: number[];
  counts: number[][];
}

/** The quantile `q[i]` (0 to 1) is `us[i]`; ascending, dense towards 1. */
export interface Curve {
  q: number[];
  us: number[];
  count: number;
}

export interface Metric {
  /** As in the bundle: `pg.wal.bytes`, `cpu.user_us`. */
  metric: string;
  of: string | null;
  /** What it is shown in: a counter's growth per second (`B/s`, `/s`, `µs/s`), a gauge as it is (`B`, `µs`, `Hz`, `°C`, empty). */
  unit: string;
  /** A counter's growth per second, given at the end of each span, so that the first value is null (as where the counter was
   * reset); else a gauge. */
  rate: boolean;
  /** Index into `clocks`. */
  clock: number;
  /** Where it was thinned, `low` and `high` are the least and greatest of the readings put together and `values` their mean,
   * a rate's by time; their time is the middle. null where all of them are. */
  values: (number | null)[];
  low: (number | null)[] | null;
  high: (number | null)[] | null;
}

export interface Event {
  /** When it began; where only its end is known and not its length, its end. */
  start_us: number;
  /** null for what has no length. */
  end_us: number | null;
  lane: 'checkpoint' | 'vacuum' | 'error' | 'other';
  kind: string;
  message: string;
  of: string | null;
}

/**
 * Mean number of sessions in each state of waiting, over time. The 24 most frequent are told one by one (those that wait for
 * work, of type `Activity`, after the others); of each kind of session, the rest is one more. Where no look succeeded there
 * is no span: `start_us` has a gap.
 */
export interface Waits {
  start_us: number[];
  width_us: number[];
  series: WaitSeries[];
}

export interface WaitSeries {
  /** `load`, `beside`, `other`, or a server process. */
  session: string;
  /** `wait_event_type`; `CPU` where it was active and did not wait; the state where it was not active; `rest`. */
  type: string;
  event: string | null;
  sessions: number[];
}

export interface Statement {
  query: string;
  calls: number;
  total_us: number;
  rows: number;
  shared_hit_blocks: number;
  shared_read_blocks: number;
  wal_bytes: number | null;
}

/** What `pgdyno explain --format json` says of one trial. */
export interface Explained {
  cell: string;
  trials: string[];
  status: 'valid' | 'suspect' | 'invalid';
  tps: number;
  latency_us: number;
  /** How often the server's sessions were looked at. */
  looks: number;
  verdict: string;
  confidence: string;
  /** They add up to the latency; the one whose place is `unexplained` may be negative. */
  parts: { place: string; of: string | null; us: number; share: number }[];
  causes: {
    name: string;
    share: number;
    /** Of what it is a share. */
    of: string;
    sentence: string;
    evidence: string[];
    next: string;
    confidence: string;
  }[];
}
