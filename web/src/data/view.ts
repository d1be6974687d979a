/**
 * What a report shows. The same as crates/analysis/src/overview/view.rs, where every field is explained; the type checker compares
 * the two on the view that `npm run fixture` writes.
 */

export type Validity = 'valid' | 'suspect' | 'invalid';

export interface View {
  schema: number;
  runs: Run[];
  columns: Column[];
  comparisons: Comparison[];
  panels: Panel[];
  profiles: Profile[];
  /** What is to be known of the figures of emulated kernels. */
  notes: string[];
  environment: Environment;
}

export interface Comparison {
  column: number;
  sentence: string;
  unshared: number;
}

export interface Run {
  id: string;
  campaign: string;
  campaign_toml: string;
  seed: string | null;
  imported: string[] | null;
  pgdyno_version: string;
  started: string | null;
  ended: string | null;
  trials: number;
  plan: PlanFacts | null;
}

export interface PlanFacts {
  trials: number;
  duration: string;
  warmup: string;
  repeats: string;
  order: 'randomized-blocks' | 'sequential';
}

export interface Column {
  label: string;
  server: string | null;
  settings: string | null;
  levels: Record<string, string>;
  versions: string[];
  banners: string[];
  kernels: string[];
}

export interface Panel {
  workload: string | null;
  scale: number | null;
  protocol: string | null;
  transport: string | null;
  conditions: string[];
  database_bytes: number | null;
  memory_bytes: number | null;
  rows: Row[];
  scalability: (Scalability | null)[];
}

export interface Scalability {
  knee: number;
  peak_clients: number;
  peak: number;
  steepest: Step | null;
  usl: Usl | null;
  unstable: number[];
}

export interface Step {
  from: number;
  to: number;
  change: number;
}

export interface Usl {
  lambda: number;
  sigma: number;
  kappa: number;
  peak_clients: number | null;
  rms: number;
}

export interface Row {
  clients: number | null;
  points: (Point | null)[];
}

export interface Point {
  n: number;
  median: number | null;
  min: number | null;
  max: number | null;
  /** For each transaction, where they were counted. */
  instructions: number | null;
  class: string | null;
  first_run_apart: number | null;
  verdict: Verdict | null;
  runs: Trial[];
}

export interface Verdict {
  verdict: string;
  change: number | null;
  ci95_low: number | null;
  ci95_high: number | null;
  p_holm: number | null;
  /** The ratio up to which two cells are equivalent, such as 1.05. */
  margin: number;
}

export interface Trial {
  id: string;
  run: string;
  repeat: number;
  attempt: number;
  position: number;
  started: string | null;
  validity: Validity;
  findings: Finding[];
  tps: number | null;
  /** Null where they were not counted. */
  instructions_per_transaction: number | null;
  transactions: number | null;
  failed: number | null;
  latency: Latency | null;
  commit_surplus: number | null;
  beside: Beside[];
  raw_read: RawRead | null;
  spans: Spans | null;
}

export interface Beside {
  workload: string;
  transactions: number;
  failed: number;
  tps: number;
  latency: Latency | null;
}

export interface RawRead {
  relation: string;
  bytes: number;
  elapsed_us: number;
  mb_s: number | null;
}

export interface Spans {
  count: number;
  mean_us: number | null;
  longest_us: number | null;
  lone_us: number | null;
  start_us: number;
  end_us: number;
  read_bytes: number | null;
  each: Span[];
  clumps: Clump[];
}

export interface Span {
  script: string;
  client: number;
  iteration: number;
  start_us: number;
  end_us: number;
  failed: boolean;
  clump: number | null;
}

export interface Clump {
  transactions: number;
  first_end_us: number;
  last_end_us: number;
}

export interface Latency {
  mean_us: number | null;
  p50_us: number | null;
  p95_us: number | null;
  p99_us: number | null;
}

export interface Finding {
  gate: string;
  validity: Validity;
  evidence: string;
  threshold: string | null;
  advice: string | null;
}

export interface Profile {
  kind: string;
  panel: number;
  clients: number | null;
  column: number;
  trials: string[];
  taken: string;
  us_per_sample: number;
  transactions: number | null;
  reservations: string[];
  roles: Frame[];
}

export interface Frame {
  name: string;
  self: number;
  total: number;
  children: Frame[];
}

export interface Environment {
  machine: string | null;
  facts: Fact[];
  confounds: Confound[];
  kernel_options: KernelOption[];
  settings: Setting[];
}

export interface Confound {
  factor: string;
  baseline: string;
  level: string;
  what: string;
  before: string;
  after: string;
}

export interface Fact {
  group: 'machine' | 'kernel' | 'sysctl' | 'other';
  name: string;
  of_kernel: boolean;
  values: { value: string | null; trials: number; columns: number[] }[];
}

export interface KernelOption {
  name: string;
  matters: boolean;
  values: (string | null)[];
}

export interface Setting {
  name: string;
  values: (SettingValue | null)[];
}

export interface SettingValue {
  unit: string | null;
  values: string[];
  default: boolean;
}
