/** What `pgdyno history --format json` says. The same as crates/report/src/history/document.rs, where fields are explained. */

export interface History {
  schema: number;
  metric: string;
  better: 'higher' | 'lower' | 'neither';
  control: string | null;
  over: string;
  selector: string;
  order: string;
  steps: { key: string; label: string; began: string | null }[];
  trials: {
    selected: number;
    runs: number;
    campaigns: string[];
    invalid: Record<string, number>;
    suspect: Record<string, number>;
    without: string[];
    without_step: number;
    without_control: number;
  };
  cells: HistoryCell[];
  shifts: HistoryShift[];
  accepted: Acceptance[];
  sentence: string;
  /** What was asked of the newest steps; nothing in a report. */
  gates: unknown[];
  said: string[];
}

export interface Acceptance {
  id: string;
  before: string;
  after: string;
  fell: boolean;
  cells: Record<string, string>[];
  note: string;
  by: string | null;
  at: string;
}

export interface HistoryCell {
  cell: Record<string, string>;
  tested: string;
  points: {
    n: number;
    median: number | null;
    values: number[];
    trials: string[];
    suspect: number;
    invalid: number;
    without_figure: number;
  }[];
  changes: HistoryChange[];
}

export interface HistoryChange {
  before: number;
  after: number;
  within_before: number;
  within_after: number;
  ratio: number;
  ci95_low: number | null;
  ci95_high: number | null;
  p: number;
  verdict: string;
  accepted: number | null;
}

export interface HistoryShift {
  before: number;
  after: number;
  ratio: number;
  smallest: number;
  largest: number;
  verdict: string;
  cells: number[];
  is_accepted: boolean;
  said: string;
}
