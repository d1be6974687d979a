/** Drawings of the trial page, from the fixture's trials: one of PostgreSQL 13, one of 18. */

import { describe, expect, test } from 'vitest';
import type { Detail } from '../../src/data/generated/detail';
import { parts } from '../../src/trial/budget';
import { cells, placedOf, proposed } from '../../src/trial/choice';
import { at, curves } from '../../src/trial/curve';
import { defaults, listed, loadLanes, metricLanes, wholeOf } from '../../src/trial/lanes';
import { tableOf, valueAt } from '../../src/trial/reading';
import { sides, type Side } from '../../src/trial/sides';
import { rows, transactionsOf } from '../../src/trial/statements';
import { sessionSamples, states } from '../../src/trial/waits';
import { details } from '../../test-results/details';
import { view } from '../../test-results/view';

const [first, second, thinned] = details as [Detail, Detail, Detail];

function shown(detail: Detail, other: Detail | null = null): Side[] {
  const of = (detail: Detail) => {
    const placed = placedOf(view, detail.id);
    if (!placed) throw new Error(`the view has no trial ${detail.id}`);
    return { placed, detail };
  };
  return sides(of(detail), other && of(other));
}

/** The same trial with its load and window `us` later. */
function later(detail: Detail, us: number): Detail {
  const moved = (times: number[]) => times.map((time) => time + us);
  const window = detail.window && { start_us: detail.window.start_us + us, end_us: detail.window.end_us + us };
  return { ...detail, window, load: { ...detail.load, start_us: moved(detail.load.start_us) }, clocks: detail.clocks.map(moved) };
}

describe('two trials', () => {
  test('are aligned at the start of their measured windows', () => {
    const both = shown(first, later(second, 3e6));
    expect(both.map(({ offset }) => offset)).toEqual([0, -3]);
    const [one, other] = loadLanes(both)[0]?.lines ?? [];
    expect(one?.track.x[0]).toBe(other?.track.x[0]);
    expect(wholeOf(both)).toEqual(wholeOf(shown(first)));
  });

  test('have different colours, even in one column', () => {
    const [one, other] = shown(first, second);
    expect(one?.colour).not.toBe(other?.colour);
    const [same, again] = shown(first, { ...first });
    expect(same?.colour).not.toBe(again?.colour);
  });
});

/** Missing values as in a lane. */
const gaps = (values: (number | null)[] | null) => values?.map((value) => value ?? NaN);

describe('lanes', () => {
  test('have the load’s figures, each interval at its middle', () => {
    const lanes = loadLanes(shown(first));
    expect(lanes.map(({ key }) => key)).toEqual(['tps', 'latency', 'failed']);
    const [tps] = lanes[0]?.lines ?? [];
    expect([...(tps?.track.y ?? [])]).toEqual(gaps(first.load.tps));
    expect(tps?.track.x[3]).toBe(((first.load.start_us[3] ?? 0) + (first.load.width_us[3] ?? 0) / 2) / 1e6);
  });

  test('show the bands of thinned series', () => {
    const [tps] = loadLanes(shown(thinned))[0]?.lines ?? [];
    expect([...(tps?.track.high ?? [])]).toEqual(gaps(thinned.load.tps_high));
  });

  test('are shown by default only for existing metrics that vary', () => {
    const usual = defaults(listed(shown(first)), true);
    expect(usual).toContain('pg.wal.bytes');
    expect(usual).toContain('cpu.user_us all');
    const flat = { ...first, metrics: first.metrics.map((metric) => (metric.metric === 'pg.wal.bytes' ? { ...metric, values: metric.values.map(() => 7) } : metric)) };
    expect(defaults(listed(shown(flat)), true)).not.toContain('pg.wal.bytes');
  });

  test('of one trial hold what is read together; of two, one metric each', () => {
    const keys = ['cpu.user_us all', 'cpu.system_us all', 'pg.wal.bytes', 'no.such'];
    expect(metricLanes(shown(first), keys).map(({ title, lines }) => [title, lines.length])).toEqual([['CPU time, all processors', 2], ['pg.wal.bytes', 1]]);
    expect(metricLanes(shown(first, second), keys).map(({ lines }) => lines.map(({ side }) => side))).toEqual([[0, 1], [0, 1], [0, 1]]);
  });

  test('a metric’s mean is that of the measured window', () => {
    const wal = listed(shown(first)).find(({ key }) => key === 'pg.wal.bytes');
    const metric = first.metrics.find(({ metric }) => metric === 'pg.wal.bytes');
    const window = first.window ?? { start_us: 0, end_us: 0 };
    const within = (first.clocks[metric?.clock ?? 0] ?? []).flatMap((us, n) => (us >= window.start_us && us <= window.end_us ? [metric?.values[n] ?? NaN] : []));
    expect(wal?.means[0]).toBeCloseTo(within.reduce((sum, one) => sum + one, 0) / within.length, 3);
  });

  test('a table has the visible values of both trials', () => {
    const both = shown(first, second);
    const lane = loadLanes(both)[1];
    if (!lane) throw new Error('there is no lane of latency');
    const { columns, rows } = tableOf(lane, both, { from: 10, to: 12 });
    expect(columns.map(({ name }) => name)).toEqual(['trial', 'time (s)', 'p50 (µs)', 'p95 (µs)', 'p99 (µs)', 'max (µs)']);
    expect(rows).toEqual([first, second].flatMap(({ load }, n) => [10, 11].map((at) => [n === 0 ? 'A' : 'B', at + 0.5, load.p50_us[at], load.p95_us[at], load.p99_us[at], load.max_us[at]])));
  });

  test('the value of a line at a time is that of its interval', () => {
    const [lane] = loadLanes(shown(first));
    const track = lane?.lines[0]?.track;
    expect(track && valueAt(track, 20.3, 'TPS')).toBe(`${first.load.tps[20]?.toLocaleString(undefined, { maximumFractionDigits: 0 }) ?? ''} TPS`);
    expect(track && valueAt(track, 900, 'TPS')).toBe('–');
  });
});

describe('waits', () => {
  test('their means over any part are those of the samples', () => {
    const both = shown(first, second);
    const [samples] = sessionSamples(both);
    const { waits } = first;
    if (!samples || !waits) throw new Error('the fixture has no waits');
    for (const [nth, series] of waits.series.entries()) {
      const key = samples.keys[nth] ?? '';
      const [from, to] = [10, 20];
      const of = series.sessions.filter((_, n) => (waits.start_us[n] ?? 0) >= from * 1e6 && (waits.start_us[n] ?? 0) < to * 1e6);
      expect(samples.mean(key, { from, to })).toBeCloseTo(of.reduce((sum, one) => sum + one, 0) / of.length, 6);
      expect(samples.columns([key], { from, to }, 10)[0]).toEqual(of.map((one) => expect.closeTo(one, 9) as number));
      expect(samples.at(key, 10.5)).toBe(series.sessions[waits.start_us.indexOf(10_000_000)]);
    }
    expect(samples.mean('never seen', { from: 10, to: 20 })).toBe(0);
    expect(samples.mean(samples.keys[0] ?? '', { from: -9, to: -5 })).toBeNull();
  });

  test('are ranked by time, without processes that wait for work, idle ones last', () => {
    const one = shown(first);
    const names = states(one, sessionSamples(one), { from: 5, to: 65 }).map(({ name }) => name);
    expect(names.some((name) => name.includes('WalWriterMain'))).toBe(false);
    expect(names.at(-1)).toBe('idle');
  });
});

test('a percentile is shown if there are enough transactions for it', () => {
  const [{ curve } = { curve: { q: [], us: [], count: 0 } }] = curves(shown(first));
  const [q, us] = [curve.q.findIndex((q) => q >= 0.99), curve.us];
  expect(at(curve, 0.99)).toBe(us[q]);
  expect(at(curve, 1)).toBe(us.at(-1));
  expect(at({ ...curve, count: 500 }, 0.999)).toBeNull();
});

test('the parts of a transaction add up to its latency', () => {
  const explained = [first, second].flatMap(({ explained }) => explained ?? []);
  const all = parts(explained);
  for (const [nth, { latency_us }] of explained.entries()) {
    expect(all.reduce((sum, { us }) => sum + (us[nth] ?? 0), 0)).toBeCloseTo(latency_us, 3);
  }
  expect(all.at(-1)?.name).toBe('unexplained');
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
});

test('statements are by time of a transaction, the most expensive first', () => {
  const found = rows(shown(first, second));
  const [top] = found;
  const total = first.statements.find(({ query }) => query === top?.query)?.total_us ?? NaN;
  expect(top?.us[0]).toBeCloseTo(total / transactionsOf(first), 6);
  const most = found.map(({ us }) => Math.max(...us.map((one) => one ?? 0)));
  expect(most).toEqual(most.toSorted((a, b) => b - a));
});

describe('what is shown where nothing is chosen', () => {
  const ids = details.map(({ id }) => id);

  test('is the last complete cell of the file, against that of the baseline', () => {
    const { trial, against } = proposed(view, (id) => ids.includes(id));
    const [shown, other] = [placedOf(view, trial), placedOf(view, against)];
    expect([shown?.at, other?.at]).toEqual([1, 0]);
    expect([shown?.clients, shown?.panel]).toEqual([other?.clients, other?.panel]);
  });

  test('is the trial nearest to the mean; the baseline has no opponent', () => {
    const { trial } = proposed(view, () => true);
    const placed = placedOf(view, trial);
    const cell = placed?.panel.rows.find(({ clients }) => clients === placed.clients)?.points[placed.at];
    const away = (figure: number | null) => Math.abs((figure ?? NaN) - (cell?.mean ?? NaN));
    const least = Math.min(...(cell?.runs ?? []).filter(({ validity }) => validity !== 'invalid').map(({ figure }) => away(figure)));
    expect(away(placed?.trial.figure ?? null)).toBe(least);
    const alone = { ...view, columns: view.columns.slice(0, 1), panels: view.panels.map((panel) => ({ ...panel, rows: panel.rows.map((row) => ({ ...row, points: row.points.slice(0, 1) })) })) };
    expect(proposed(alone, () => true).against).toBeNull();
  });

  test('every trial can be chosen, once', () => {
    const all = cells(view).flatMap(({ trials }) => trials.map(({ trial }) => trial.id));
    expect(new Set(all).size).toBe(all.length);
    expect(all.length).toBe(view.runs.reduce((sum, run) => sum + run.trials, 0));
    expect(new Set(cells(view).map(({ name }) => name)).size).toBe(cells(view).length);
  });
});
