/** A panel's figure over clients or scales: every trial as a mark, a line through the geometric means. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import { count, tick, tps } from '../data/format';
import { title, trialsOf, type Placed } from '../data/trials';
import { colour, dash, symbol } from '../parts/series';
import type { Column, Panel, Point } from '../data/generated/view';

/** Position of a trial in the chart, in pixels. */
export interface Mark {
  placed: Placed;
  x: number;
  y: number;
  element: Element;
}

export interface Chart {
  svg: Element;
  /** Every trial that has a throughput, by column, level and repeat. */
  marks: Mark[];
}

/** Data of the chart. */
export interface Sweep {
  /** Levels of the axis, ascending. */
  levels: number[];
  /** Indices of the displayed columns. */
  shown: number[];
  point: (at: number, level: number) => Point | null;
  /** Trials with the level at which they are drawn. */
  trials: (Placed & { level: number })[];
  axis: { label: string; tick: (level: number) => string; lines: number };
  figure: Panel['figure'];
}

interface Summary {
  level: number;
  mean: number | null;
  min: number | null;
  max: number | null;
}

/** Most columns whose ranges are areas: those of more would hide each other. */
const AREAS = 2;
/** Largest distance in pixels between neighbouring columns, and between marks that would overlap. */
const APART = 16;
const ASIDE = 4.5;
const RADIUS = 3.5;
const MARGIN_RIGHT = 8;
const LINE = 14;

/** Draws a panel over its clients; `hidden` are the indices of hidden columns. */
export function clientSweep(panel: Panel, columns: Column[], hidden: Set<number>, width: number): Chart {
  // The number of clients of imported trials may be unknown: only the table has those.
  const trials = trialsOf(panel, columns).flatMap((one) => (one.clients === null ? [] : [{ ...one, level: one.clients }]));
  return sweep(
    {
      levels: panel.rows.flatMap(({ clients }) => clients ?? []),
      shown: columns.map((_, at) => at).filter((at) => !hidden.has(at) && panel.rows.some((row) => row.points[at])),
      point: (at, level) => panel.rows.find(({ clients }) => clients === level)?.points[at] ?? null,
      trials,
      axis: { label: 'clients', tick: count, lines: 1 },
      figure: panel.figure,
    },
    width,
  );
}

export function sweep({ levels, shown, point, trials, axis, figure }: Sweep, width: number): Chart {
  const marks: Mark[] = [];
  const placed = trials.filter(({ trial, at }) => trial.figure !== null && shown.includes(at));
  const log = (levels.at(-1) ?? 1) / (levels[0] ?? 1) > 8;
  const most = Math.max(0, ...placed.map(({ trial }) => trial.figure ?? 0));
  const marginLeft = 14 + 7 * tps(most).length;
  const inset = 12 + APART;
  const scaled = levels.map((n) => (log ? Math.log2(n) : n));
  const reach = (scaled.at(-1) ?? 0) - (scaled[0] ?? 0) || 1;
  const along = scaled.map((n) => ((n - (scaled[0] ?? 0)) / reach) * (width - marginLeft - MARGIN_RIGHT - 2 * inset));
  const closest = Math.min(Infinity, ...along.slice(1).map((at, n) => at - (along[n] ?? 0)));
  // All columns of one level stay apart from those of the next, and within the chart.
  const apart = Math.min(APART, (0.7 * closest) / shown.length, (2 * (inset - 6)) / Math.max(1, shown.length - 1));

  const layers = shown.flatMap((at, nth) => {
    const dx = (nth - (shown.length - 1) / 2) * apart;
    const stroke = colour(at);
    const summary: Summary[] = levels.map((level) => {
      const of = point(at, level);
      return { level, mean: of?.mean ?? null, min: of?.min ?? null, max: of?.max ?? null };
    });
    const known = summary.filter((point) => point.mean !== null);
    const own = placed.filter((one) => one.at === at);
    const used = own.filter(({ trial }) => trial.validity !== 'invalid');
    const unused = own.filter(({ trial }) => trial.validity === 'invalid');
    const where = { x: 'level', y: (one: Placed) => one.trial.figure, dx, clip: false };
    return [
      ...(shown.length > AREAS ? [] : [Plot.areaY(summary, { x: 'level', y1: 'min', y2: 'max', fill: stroke, fillOpacity: 0.13, dx })]),
      Plot.ruleX(known, { x: 'level', y1: 'min', y2: 'max', stroke, strokeWidth: 1, dx }),
      Plot.lineY(summary, { x: 'level', y: 'mean', stroke, strokeWidth: 1.5, strokeDasharray: dash(at), dx }),
      Plot.dot(used, {
        ...where,
        r: RADIUS,
        symbol: symbol(at),
        stroke: (one: Placed) => (one.trial.validity === 'suspect' ? stroke : 'var(--paper)'),
        strokeWidth: 1,
        fill: (one: Placed) => (one.trial.validity === 'suspect' ? 'var(--paper)' : stroke),
        render: swarm(used, dx, apart / 2, marks),
      }),
      Plot.dot(unused, {
        ...where,
        r: RADIUS + 0.5,
        symbol: 'times',
        stroke,
        strokeWidth: 1.5,
        render: swarm(unused, dx, apart / 2, marks),
      }),
    ];
  });

  const svg = plot({
    width,
    height: height(width),
    marginLeft,
    marginRight: MARGIN_RIGHT,
    marginTop: 30,
    marginBottom: 22 + LINE * axis.lines,
    style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    x: {
      type: log ? 'log' : 'linear',
      ...(log ? { base: 2 } : {}),
      domain: [levels[0] ?? 1, levels.at(-1) ?? 1],
      inset,
      ticks: legible(levels, along, axis.tick),
      tickFormat: axis.tick,
      tickSize: 4,
      label: log ? `${axis.label} (log₂)` : axis.label,
      labelAnchor: 'center',
      labelArrow: 'none',
    },
    y: {
      domain: [0, most || 1],
      nice: true,
      ticks: most ? 5 : [],
      tickFormat: tick,
      tickSize: 0,
      label: `↑ ${figure.label}, ${figure.better} is better`,
      labelArrow: 'none',
    },
    marks: [
      Plot.gridY({ ticks: most ? 5 : [], stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.ruleY([0], { stroke: 'var(--axis)' }),
      Plot.text(placed.length > 0 ? [] : ['nothing to draw'], { frameAnchor: 'middle', fill: 'var(--soft)' }),
      ...layers,
    ],
  });
  return { svg, marks: marks.sort((a, b) => placed.indexOf(a.placed as (typeof placed)[number]) - placed.indexOf(b.placed as (typeof placed)[number])) };
}

/** Height of a chart of this width. style.css reserves the same. */
function height(width: number): number {
  return Math.round(Math.max(240, Math.min(380, width * 0.62)));
}

/** Text alternative of the chart, in one sentence. */
export function describe(panel: Panel, columns: Column[]): string {
  const clients = panel.rows.flatMap((row) => row.clients ?? []).join(', ') || 'an unknown number of';
  return (
    `${title(panel)}: ${panel.figure.label} at ${clients} clients for ` +
    `${columns.map((column) => column.label).join(', ')}.`
  );
}

/** Moves overlapping marks aside, names their elements and records their positions. */
function swarm(placed: Placed[], dx: number, room: number, marks: Mark[]): Plot.RenderFunction {
  return (index, scales, values, dimensions, context, next) => {
    const y = pixels(values.y);
    const x = aside(pixels(values.x), y, room);
    const group = next?.(index, scales, Object.assign({}, values, { x }), dimensions, context) ?? null;
    index.forEach((datum, nth) => {
      const element = group?.children[nth];
      const one = placed[datum];
      if (!element || !one) return;
      element.setAttribute('data-trial', one.trial.id);
      element.setAttribute('data-validity', one.trial.validity);
      marks.push({ placed: one, x: (x[datum] ?? 0) + dx, y: y[datum] ?? 0, element });
    });
    return group;
  };
}

function pixels(channel: unknown): number[] {
  return Array.from((channel ?? []) as ArrayLike<number>);
}

/** Positions at which points of the same `x` and about the same `y` are side by side, at most `room` away. */
function aside(x: number[], y: number[], room: number): number[] {
  const step = Math.min(ASIDE, room);
  const places = [0, step, -step, 2 * step, -2 * step].filter((place) => Math.abs(place) <= room);
  const moved: number[] = [];
  for (const [point, own] of x.entries()) {
    const hides = (at: number) =>
      moved.some((other, n) => Math.abs(other - at) < step && Math.abs((y[n] ?? 0) - (y[point] ?? 0)) < ASIDE);
    moved.push(own + (places.find((place) => !hides(own + place)) ?? 0));
  }
  return moved;
}

/** Levels whose labels do not overlap; `along` are their positions, in pixels. */
function legible(levels: number[], along: number[], tick: (level: number) => string): number[] {
  const kept: number[] = [];
  let limit = Infinity;
  // From the right: the largest numbers of clients matter most in a sweep.
  for (const [n, at] of levels.map((n, nth) => [n, along[nth] ?? 0] as const).toReversed()) {
    const half = 4 + 3.5 * Math.max(...tick(n).split('\n').map((line) => line.length));
    if (at + half > limit) continue;
    kept.push(n);
    limit = at - half;
  }
  return kept.toReversed();
}
