/** Every verdict of a view, one row each, by importance. */

import { counted } from '../data/format';
import { intervalOf, verdictDirection, title, distinguishing, figurePoint, phasePoint, scriptLabel, scriptPoint } from '../data/trials';
import type { Panel, Point, Trial, Verdict, View } from '../data/generated/view';

export interface Judged {
  panel: Panel;
  clients: number | null;
  /** Index of the column. */
  at: number;
  /** The cell in words, the same for all columns; followed by a script, a phase or a figure of the workload's own if the verdict is on that. */
  cell: string;
  /** What is judged, if it is not the cell's figure, and whether that is a latency. */
  part: { figure: string; isLatency: boolean } | null;
  verdict: Verdict;
  kind: Kind;
  /** The cell in the first column, and in this one. */
  before: Point;
  after: Point;
  /** Profiles of both, as indices into the view's, if both sides were profiled. */
  profiles: { of: number; against: number } | null;
}

/** By importance: what is not decided is last, however large its change. */
export const KINDS = ['regression', 'improvement', 'equivalent', 'unstable', 'inconclusive', 'insufficient', 'no verdict'] as const;
export type Kind = (typeof KINDS)[number];

/** Orders of the rows; by importance is the default. */
export const ORDERS = ['cell', 'server', 'change', 'p', 'n'] as const;

export function verdictsOf(view: View): Judged[] {
  return view.panels.flatMap((panel) =>
    panel.rows.flatMap(({ clients, points }) =>
      points.flatMap((after, at): Judged[] => {
        const before = points[0];
        if (!before || !after?.verdict || at === 0) return [];
        const cell = cellOf(view, panel, clients);
        const profiles = profilesOf(view, panel, clients, at);
        const judged = (cell: string, part: Judged['part'], verdict: Verdict, before: Point, after: Point): Judged =>
          ({ panel, clients, at, cell, part, verdict, kind: kindOf(verdict), before, after, profiles });
        const scripts = after.scripts.flatMap((of) => {
          const first = before.scripts.find(({ script }) => script === of.script);
          return first && of.verdict ? [judged(`${cell}, ${of.script}`, { figure: scriptLabel(of), isLatency: true }, of.verdict, scriptPoint(before, first), scriptPoint(after, of))] : [];
        });
        const phases = after.phases.flatMap((of) => {
          const first = before.phases.find(({ phase }) => phase === of.phase);
          return first && of.verdict ? [judged(`${cell}, phase ${of.phase}`, { figure: 'TPS', isLatency: false }, of.verdict, phasePoint(before, first), phasePoint(after, of))] : [];
        });
        const own = after.figures.flatMap((of) => {
          const first = before.figures.find(({ metric }) => metric === of.metric);
          return first && of.verdict ? [judged(`${cell}, ${of.metric}`, { figure: of.metric, isLatency: false }, of.verdict, figurePoint(before, first), figurePoint(after, of))] : [];
        });
        return [judged(cell, null, after.verdict, before, after), ...scripts, ...phases, ...own];
      }),
    ),
  );
}

/** A cell without its column, in words, as far as it distinguishes cells. */
function cellOf(view: View, panel: Panel, clients: number | null): string {
  return [title(panel), clients === null ? '' : counted(clients, 'client'), ...distinguishing(panel, view)].filter(Boolean).join(', ');
}

function kindOf(verdict: Verdict): Kind {
  const way = verdictDirection(verdict);
  if (way === 'worse') return 'regression';
  if (way === 'better') return 'improvement';
  return KINDS.find((kind) => verdict.verdict.toLowerCase().startsWith(kind)) ?? 'inconclusive';
}

/** The profiles of a cell in two columns, as indices into the view's; null unless both were profiled. */
export function profilesOf(view: View, panel: Panel, clients: number | null, at: number, baseline = 0): Judged['profiles'] {
  const place = view.panels.indexOf(panel);
  const find = (column: number) =>
    view.profiles.findIndex((one) => one.panel === place && one.clients === clients && one.column === column && one.kind === 'on-cpu');
  const [of, against] = [find(at), find(baseline)];
  return of < 0 || against < 0 ? null : { of, against };
}

/** The usable trial nearest to the mean, which represents its cell best. */
export function typical(point: Point): Trial | null {
  const { mean } = point;
  const far = ({ figure }: Trial) => Math.abs((figure ?? Infinity) - (mean ?? 0));
  const usable = point.runs.filter(({ validity, figure }) => validity !== 'invalid' && figure !== null);
  return usable.toSorted((a, b) => far(a) - far(b))[0] ?? null;
}

/** `order` is one of `ORDERS`, with `-` before it for descending; anything else is by importance. */
export function ordered(rows: Judged[], order: string | undefined): Judged[] {
  const descending = order?.startsWith('-') ?? false;
  const by = (order ?? '').replace(/^-/, '');
  const figure: Record<string, (row: Judged) => number | null> = {
    server: (row) => row.at,
    change: (row) => row.verdict.change,
    p: (row) => row.verdict.p_holm,
    n: (row) => Math.min(row.before.n, row.after.n),
  };
  const key = figure[by];
  if (by === 'cell') return descending ? rows.toReversed() : rows;
  if (!key) return rows.toSorted(byImportance);
  return rows.toSorted((a, b) => {
    const [left, right] = [key(a), key(b)];
    // Missing values are last in either order.
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return descending ? right - left : left - right;
  });
}

/** Whether a verdict is one: a change, or equivalence. */
export function isDecided({ kind }: Judged): boolean {
  return kind === 'regression' || kind === 'improvement' || kind === 'equivalent';
}

function byImportance(a: Judged, b: Judged): number {
  const size = ({ verdict }: Judged) => Math.abs(Math.log1p(Math.max(verdict.change ?? 0, -0.999)));
  return KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || size(b) - size(a);
}

/** The widest margin of equivalence, as a ratio. */
export function widest(rows: Judged[]): number {
  return Math.max(1.01, ...rows.map(({ verdict }) => verdict.margin));
}

/** Reach of the bars, as the logarithm of a ratio: enough for most intervals. */
export function reach(rows: Judged[]): number {
  const ends = rows.flatMap(({ verdict }) => {
    const interval = intervalOf(verdict);
    const known = [verdict.change, interval?.low ?? null, interval?.high ?? null].filter((one) => one !== null).map((one) => Math.abs(Math.log1p(Math.max(one, -0.99))));
    return known.length > 0 ? [Math.max(...known)] : [];
  });
  const most = ends.toSorted((a, b) => a - b)[Math.floor(0.9 * (ends.length - 1))] ?? 0;
  return Math.min(Math.max(most, 2.2 * Math.log(widest(rows))), Math.log(2.5));
}
