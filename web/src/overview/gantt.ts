/** Gantt chart of the clients: a bar for each transaction, on one time axis. */

import * as Plot from '@observablehq/plot';
import { plot } from '../parts/plot';
import { colour } from '../parts/series';
import { count, counted, fixed, MISSING, seconds as inSeconds } from '../data/format';
import { clientsOf, title, type Placed } from '../data/trials';
import type { SynchronizedEnds, Span, Spans } from '../data/generated/view';

const ROW = 20;
const MARGIN_TOP = 8;
const MARGIN_BOTTOM = 38;
const MARGIN_RIGHT = 14;
/** Most clients that are drawn; the table has all. */
const MAX_CLIENTS = 60;
/** Room for the figure after a bar, in pixels. */
const LABEL = 64;

/** Duration relative to a lone transaction: `6.34×`. */
export function multiple(us: number | null, lone_us: number | null): string {
  return us === null || lone_us === null || lone_us <= 0 ? MISSING : `${fixed(us / lone_us, 2)}×`;
}

/** Letter of a group that ended together. */
export function letter(clump: number | null): string {
  if (clump === null) return '';
  return clump < 26 ? String.fromCharCode(65 + clump) : count(clump + 1);
}

/** Draws a trial's transactions; `until_us` is the end of the axis, the same in all charts of a panel. */
export function gantt(spans: Spans, at: number, until_us: number, width: number): Element {
  const clients = [...new Set(spans.each.map(({ client }) => client))].slice(0, MAX_CLIENTS);
  const drawn = spans.each.filter(({ client }) => clients.includes(client));
  const seconds = (us: number) => us / 1e6;
  const last = drawn.filter((one, n) => drawn[n + 1]?.client !== one.client);
  const margin = 14 + 7 * count(clients.at(-1) ?? 0).length;
  const perPixel = until_us / (width - margin - MARGIN_RIGHT);
  const fits = (one: Span) => (until_us - one.end_us) / perPixel > LABEL;
  const figure = (one: Span) => `${inSeconds(one.end_us - one.start_us)}${one.clump === null ? '' : ` ${letter(one.clump)}`}`;
  const label = { text: figure, y: 'client', fontSize: 11 } as const;
  const bar = {
    x1: (one: Span) => seconds(one.start_us - spans.start_us),
    x2: (one: Span) => seconds(one.end_us - spans.start_us),
    y: 'client',
    stroke: colour(at),
  };
  return plot({
    width,
    height: MARGIN_TOP + MARGIN_BOTTOM + ROW * clients.length,
    marginLeft: margin,
    marginRight: MARGIN_RIGHT,
    marginTop: MARGIN_TOP,
    marginBottom: MARGIN_BOTTOM,
    style: { background: 'none', fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    x: {
      domain: [0, seconds(until_us) || 1],
      ticks: Math.max(3, Math.min(8, Math.floor(width / 90))),
      tickSize: 4,
      label: 'seconds after the first start',
      labelAnchor: 'center',
      labelArrow: 'none',
    },
    y: { type: 'band', domain: clients, padding: 0.22, tickSize: 0, label: null },
    marks: [
      Plot.gridX({ stroke: 'var(--rule)', strokeOpacity: 1 }),
      ...(spans.lone_us === null
        ? []
        : [Plot.ruleX([seconds(spans.lone_us)], { stroke: 'var(--axis)', strokeDasharray: '3 3' })]),
      Plot.barX(
        drawn.filter((one) => !one.failed),
        // Neighbouring bars differ.
        { ...bar, fill: colour(at), fillOpacity: (one: Span) => (one.iteration % 2 === 1 ? 1 : 0.55) },
      ),
      Plot.barX(
        drawn.filter((one) => one.failed),
        { ...bar, fill: 'var(--paper)', strokeDasharray: '3 2' },
      ),
      Plot.ruleX(spans.clumps, {
        x: (clump: SynchronizedEnds) => seconds(clump.last_end_us - spans.start_us),
        stroke: 'var(--ink)',
      }),
      Plot.text(last.filter(fits), {
        ...label,
        x: (one: Span) => seconds(one.end_us - spans.start_us),
        textAnchor: 'start',
        dx: 5,
        fill: 'var(--ink)',
      }),
      Plot.text(
        last.filter((one) => !fits(one) && (one.end_us - one.start_us) / perPixel > LABEL),
        {
          ...label,
          x: (one: Span) => seconds(one.end_us - spans.start_us),
          textAnchor: 'end',
          dx: -5,
          fill: (one: Span) => (one.failed ? 'var(--ink)' : 'var(--paper)'),
        },
      ),
    ],
  });
}

/** Text alternative of the chart, in one sentence. */
export function describe(placed: Placed, spans: Spans): string {
  const together = spans.clumps.map((clump) => `${count(clump.transactions)} ended together`).join(', ');
  return (
    `${title(placed.panel)}, ${clientsOf(placed)}${placed.column.label}: ${counted(spans.count, 'transaction')} of a mean of ` +
    `${inSeconds(spans.mean_us)} in ${inSeconds(spans.end_us - spans.start_us)}` +
    `${together && `; ${together}`}. The table has the figures.`
  );
}
