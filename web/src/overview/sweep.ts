/** The client-sweep chart: throughput over clients, every trial as a mark, a line through the medians. */

import * as Plot from '@observablehq/plot';
import { count, LOCALE, tps } from '../data/format';
import { title, trialsOf, type Placed } from '../data/trials';
import type { Column, Panel } from '../data/view';

/** Colour and mark of a column, the same in every chart, table and legend. */
export function colour(at: number): string {
  return `var(--series-${at % 8})`;
}
export function symbol(at: number): Symbol {
  return SYMBOLS[at % SYMBOLS.length] ?? 'circle';
}
const SYMBOLS = ['circle', 'square', 'triangle', 'diamond'] as const;
type Symbol = (typeof SYMBOLS)[number];

/** A trial as it stands in the chart, in pixels. */
export interface Mark {
  placed: Placed;
  x: number;
  y: number;
  element: Element;
}

export interface Chart {
  svg: Element;
  /** Every trial that has a throughput, by column, clients and repeat. */
  marks: Mark[];
}

interface Summary {
  clients: number;
  median: number | null;
  min: number | null;
  max: number | null;
}

/** The most pixels between neighbouring columns, and between marks that would hide each other. */
const APART = 16;
const ASIDE = 4.5;
const RADIUS = 3.5;
const MARGIN_RIGHT = 8;

/** Draws a panel; `hidden` are the indices of columns left out. */
export function clientSweep(panel: Panel, columns: Column[], hidden: Set<number>, width: number): Chart {
  const shown = columns.map((_, at) => at).filter((at) => !hidden.has(at) && panel.rows.some((row) => row.points[at]));
  const marks: Mark[] = [];
  const placed = trialsOf(panel, columns).filter(({ clients, trial, at }) => clients !== null && trial.tps !== null && shown.includes(at));
  // Imported trials may not say how many clients there were: the table has them.
  const rows = panel.rows.flatMap((row) => (row.clients === null ? [] : [{ ...row, clients: row.clients }]));
  const clients = rows.map((row) => row.clients);
  const log = (clients.at(-1) ?? 1) / (clients[0] ?? 1) > 8;
  const most = Math.max(0, ...placed.map(({ trial }) => trial.tps ?? 0));
  const marginLeft = 14 + 7 * tps(most).length;
  const inset = 12 + APART;
  const scaled = clients.map((n) => (log ? Math.log2(n) : n));
  const reach = (scaled.at(-1) ?? 0) - (scaled[0] ?? 0) || 1;
  const along = scaled.map((n) => ((n - (scaled[0] ?? 0)) / reach) * (width - marginLeft - MARGIN_RIGHT - 2 * inset));
  const closest = Math.min(Infinity, ...along.slice(1).map((at, n) => at - (along[n] ?? 0)));
  // All columns of one number of clients stay clear of those of the next.
  const apart = Math.min(APART, (0.7 * closest) / shown.length);

  const layers = shown.flatMap((at, nth) => {
    const dx = (nth - (shown.length - 1) / 2) * apart;
    const stroke = colour(at);
    const summary: Summary[] = rows.map((row) => {
      const point = row.points[at];
      return { clients: row.clients, median: point?.median ?? null, min: point?.min ?? null, max: point?.max ?? null };
    });
    const known = summary.filter((point) => point.median !== null);
    const own = placed.filter((one) => one.at === at);
    const used = own.filter(({ trial }) => trial.validity !== 'invalid');
    const unused = own.filter(({ trial }) => trial.validity === 'invalid');
    const where = { x: (one: Placed) => one.clients, y: (one: Placed) => one.trial.tps, dx, clip: false };
    return [
      Plot.areaY(summary, { x: 'clients', y1: 'min', y2: 'max', fill: stroke, fillOpacity: 0.13, dx }),
      Plot.ruleX(known, { x: 'clients', y1: 'min', y2: 'max', stroke, strokeWidth: 1, dx }),
      Plot.lineY(summary, { x: 'clients', y: 'median', stroke, strokeWidth: 1.5, dx }),
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

  const svg = Plot.plot({
    width,
    height: Math.round(Math.max(240, Math.min(380, width * 0.62))),
    marginLeft,
    marginRight: MARGIN_RIGHT,
    marginTop: 30,
    marginBottom: 36,
    style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    x: {
      type: log ? 'log' : 'linear',
      ...(log ? { base: 2 } : {}),
      domain: [clients[0] ?? 1, clients.at(-1) ?? 1],
      inset,
      ticks: legible(clients, along),
      tickFormat: count,
      tickSize: 4,
      label: log ? 'clients (log₂)' : 'clients',
      labelAnchor: 'center',
      labelArrow: 'none',
    },
    y: {
      domain: [0, most || 1],
      nice: true,
      ticks: most ? 5 : [],
      tickFormat: (figure: number) => figure.toLocaleString(LOCALE),
      tickSize: 0,
      label: 'transactions per second',
      labelArrow: 'none',
    },
    marks: [
      Plot.gridY({ ticks: most ? 5 : [], stroke: 'var(--rule)', strokeOpacity: 1 }),
      Plot.ruleY([0], { stroke: 'var(--axis)' }),
      Plot.text(placed.length > 0 ? [] : ['nothing to draw'], { frameAnchor: 'middle', fill: 'var(--soft)' }),
      ...layers,
    ],
  });
  return { svg, marks: marks.sort((a, b) => placed.indexOf(a.placed) - placed.indexOf(b.placed)) };
}

/** One sentence that stands for the chart where it can't be seen. */
export function describe(panel: Panel, columns: Column[]): string {
  const clients = panel.rows.flatMap((row) => row.clients ?? []).join(', ') || 'an unknown number of';
  return (
    `${title(panel)}: transactions per second at ${clients} clients for ` +
    `${columns.map((column) => column.label).join(', ')}. The table has the figures.`
  );
}

/** Moves marks aside that would hide each other, names their elements and keeps where they are. */
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

/** The `x` at which points of the same `x` and about the same `y` stand beside each other, at most `room` away. */
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

/** The numbers of clients whose labels do not run into each other; `along` is where they stand, in pixels. */
function legible(clients: number[], along: number[]): number[] {
  const kept: number[] = [];
  let limit = Infinity;
  // From the right: the most clients are what a sweep is made for.
  for (const [n, at] of clients.map((n, nth) => [n, along[nth] ?? 0] as const).toReversed()) {
    const half = 4 + 3.5 * count(n).length;
    if (at + half > limit) continue;
    kept.push(n);
    limit = at - half;
  }
  return kept.toReversed();
}
