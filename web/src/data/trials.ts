/** The trials of a view, each with its cell. */

import { count, counted, tps } from './format';
import type { Table } from './table';
import type { Column, Panel, Point, FigurePoint, PhasePoint, ScriptPoint, Trial, Verdict, View } from './generated/view';

export interface Placed {
  trial: Trial;
  panel: Panel;
  clients: number | null;
  column: Column;
  /** Index of `column` in the view. */
  at: number;
}

/** Every trial of a panel as rows, except those of hidden columns. */
export function trialsTable(panel: Panel, columns: Column[], hidden: Set<number>): Table {
  const text = (name: string) => ({ name, text: true });
  return {
    columns: [
      text('server'), { name: 'clients', show: count }, { name: 'repeat', show: count }, text('validity'), { name: panel.figure.label, show: tps }, { name: 'TPS', show: tps },
      ...['mean', 'p50', 'p95', 'p99'].map((figure) => ({ name: `latency ${figure} (µs)`, show: count })),
      { name: 'transactions', show: count }, { name: 'failed', show: count }, text('started'), text('trial'),
    ],
    rows: trialsOf(panel, columns)
      .filter(({ at }) => !hidden.has(at))
      .map(({ trial, clients, column }) => [
        column.label, clients, trial.repeat, trial.validity, trial.figure, trial.tps,
        trial.latency?.mean_us ?? null, trial.latency?.p50_us ?? null, trial.latency?.p95_us ?? null, trial.latency?.p99_us ?? null,
        trial.transactions, trial.failed, trial.started, trial.id,
      ]),
  };
}

/** Every trial of a panel: by column, then clients, then repeat. */
export function trialsOf(panel: Panel, columns: Column[]): Placed[] {
  return columns.flatMap((column, at) =>
    panel.rows.flatMap((row) =>
      (row.points[at]?.runs ?? []).map((trial) => ({ trial, panel, clients: row.clients, column, at })),
    ),
  );
}

/** `8 clients, `; empty if the number is unknown. */
export function clientsOf({ clients }: Placed): string {
  return clients === null ? '' : `${counted(clients, 'client')}, `;
}

/** `scale 300`, or `data set shop` of the user's own; null if unknown. */
export function dataOf({ scale, dataset }: Panel): string | null {
  if (dataset !== null) return `data set ${dataset}`;
  return scale === null ? null : `scale ${count(scale)}`;
}

/** Title of a panel: its workload and data, if known. */
export function title(panel: Panel): string {
  return [panel.workload, dataOf(panel)].filter((part) => part !== null).join(', ') || 'imported';
}

/** Levels that distinguish a panel from others with its title: those that not all of them have. */
export function distinguishing(panel: Panel, view: View): string[] {
  const all = ({ protocol, transport, conditions }: Panel) => [protocol, transport, ...conditions].filter((one) => one !== null);
  const alike = view.panels.filter((other) => title(other) === title(panel)).map(all);
  return all(panel).filter((one) => !alike.every((other) => other.includes(one)));
}

export function allTrials(view: View): Placed[] {
  return view.panels.flatMap((panel) => trialsOf(panel, view.columns));
}

/** Whether a metric is the 99th percentile of a latency, not its mean. */
const isP99 = (metric: string) => metric.startsWith('script.latency.p99');

/** A script of a point as a point of its own, whose figure is the latency that it is judged by, in microseconds. */
export function scriptPoint(point: Point, of: ScriptPoint): Point {
  const figure = ({ scripts }: Trial) => {
    const { mean_us = null, p99_us = null } = scripts.find(({ script }) => script === of.script)?.latency ?? {};
    return isP99(of.metric) ? p99_us : mean_us;
  };
  return { ...point, ...of, secondary: of.tps, runs: point.runs.map((run) => ({ ...run, figure: figure(run) })) };
}

/** A phase of a point as a point of its own, whose figure is its throughput. */
export function phasePoint(point: Point, of: PhasePoint): Point {
  const figure = ({ phases }: Trial) => phases.find(({ phase }) => phase === of.phase)?.tps ?? null;
  return { ...point, ...of, phases: [], secondary: null, runs: point.runs.map((run) => ({ ...run, figure: figure(run) })) };
}

/** A figure of the workload's own as a point of its own. */
export function figurePoint(point: Point, of: FigurePoint): Point {
  const figure = ({ figures }: Trial) => figures[of.metric] ?? null;
  return { ...point, ...of, secondary: null, runs: point.runs.map((run) => ({ ...run, figure: figure(run) })) };
}

/** What a script is judged by. */
export function scriptLabel({ metric }: ScriptPoint): string {
  return isP99(metric) ? 'latency p99' : 'mean latency';
}

/** The most frequent number of usable trials of a panel's cells; 0 if no cell has any. */
export function commonN(panel: Panel): number {
  const cells = panel.rows.flatMap((row) => row.points.flatMap((point) => point?.n ?? [])).filter((n) => n > 0);
  const times = (n: number) => cells.filter((other) => other === n).length;
  return cells.reduce((common, n) => (times(n) > times(common) ? n : common), cells[0] ?? 0);
}

/** The interval of a verdict's change: with 95% confidence, or by sessions with 99%. */
export function intervalOf({ ci95_low, ci95_high, ci99_low, ci99_high }: Verdict): { low: number; high: number } | null {
  const [low, high] = [ci95_low ?? ci99_low, ci95_high ?? ci99_high];
  return low === null || high === null ? null : { low, high };
}

/** Signs of the directions, for readers who do not see colours. */
export const SIGNS = { worse: '▼', better: '▲', same: '=', open: '?' };

/** Direction of a verdict; `open` if it is undecided. */
export function verdictDirection({ verdict }: Pick<Verdict, 'verdict'>): 'worse' | 'better' | 'same' | 'open' {
  if (verdict.startsWith('REGRESSION')) return 'worse';
  if (verdict.startsWith('IMPROVEMENT')) return 'better';
  return verdict === 'EQUIVALENT' ? 'same' : 'open';
}
