/** The lanes of a timeline with their lines, of one trial or of two. */

import { firstAtOrAfter, Track, type Range } from './timeline';
import { seconds, type Side } from './sides';
import type { Metric } from '../data/generated/detail';

export interface Lane {
  key: string;
  title: string;
  /** A unit for `inUnit`. */
  unit: string;
  better: 'higher' | 'lower' | null;
  log: boolean;
  fromZero: boolean;
  lines: Line[];
}

export interface Line {
  /** The same in both trials. */
  name: string;
  /** Index of its trial. */
  side: number;
  colour: string;
  track: Track;
}

/** A metric of the list that can be drawn. */
export interface Listed {
  /** As in the address: `metric` or `metric of`. */
  key: string;
  metric: string;
  of: string | null;
  /** Its meaning; null if it is not in the catalogue of metrics. */
  meaning: string | null;
  unit: string;
  /** The head of its name: `cpu`, `pg.wal`. */
  source: string;
  /** Mean of the measured window, for each trial. */
  means: (number | null)[];
  /** Whether it changes in any trial. */
  varies: boolean;
}

/** The time range of all trials. */
export function wholeOf(all: Side[]): Range {
  const ends = all.flatMap((side) => {
    const { load, clocks, waits } = side.detail;
    const spans = load.start_us.length > 0 ? load : waits;
    const last = (spans?.start_us.length ?? 0) - 1;
    const of = spans && last >= 0 ? [spans.start_us[0], (spans.start_us[last] ?? 0) + (spans.width_us[last] ?? 0)] : clocks.flatMap((clock) => [clock[0], clock.at(-1)]);
    return of.flatMap((us) => (us === undefined ? [] : [seconds(us, side)]));
  });
  return ends.length === 0 ? { from: 0, to: 1 } : { from: Math.min(...ends), to: Math.max(Math.max(...ends), Math.min(...ends) + 1e-3) };
}

/** A tint of a colour, the first the strongest. */
export function tint(colour: string, nth: number): string {
  const shares = [100, 80, 64, 52];
  return nth === 0 ? colour : `color-mix(in oklab, ${colour} ${shares[nth % shares.length] ?? 100}%, var(--paper))`;
}

/** Throughput, latency and, if there are any, failed transactions. */
export function loadLanes(all: Side[]): Lane[] {
  const ran = all.filter(({ detail }) => detail.load.start_us.length > 0);
  if (ran.length === 0) return [];
  const lines = (make: (side: Side) => [name: string, y: (number | null)[], low?: (number | null)[] | null, high?: (number | null)[] | null][]): Line[] =>
    ran.flatMap((side) => {
      const { start_us, width_us } = side.detail.load;
      const x = start_us.map((start, n) => seconds(start + (width_us[n] ?? 0) / 2, side));
      const every = make(side);
      return every.map(([name, y, low, high], nth) => ({
        name,
        side: all.indexOf(side),
        colour: tint(side.colour, every.length - 1 - nth),
        track: new Track(x, y, low, high),
      }));
    });
  const lanes: Lane[] = [
    {
      key: 'tps', title: 'Throughput', unit: 'TPS', better: 'higher', log: false, fromZero: true,
      lines: lines(({ detail: { load } }) => [['TPS', load.tps, load.tps_low, load.tps_high]]),
    },
    {
      key: 'latency', title: 'Latency', unit: 'µs', better: 'lower', log: true, fromZero: false,
      lines: lines(({ detail: { load } }) => [['p50', load.p50_us], ['p95', load.p95_us], ['p99', load.p99_us], ['max', load.max_us]]),
    },
  ];
  if (ran.some(({ detail }) => detail.load.failed.some((failed) => failed !== null && failed > 0))) {
    lanes.push({
      key: 'failed', title: 'Failed transactions', unit: '/s', better: 'lower', log: false, fromZero: true,
      lines: lines(({ detail: { load } }) => [['failed', load.failed.map((failed, n) => (failed === null ? null : (failed * 1e6) / (load.width_us[n] ?? 1e6)))]]),
    });
  }
  return lanes;
}

export function keyOf({ metric, of }: Pick<Metric, 'metric' | 'of'>): string {
  return of === null ? metric : `${metric} ${of}`;
}

/** Every metric of any trial, in order. */
export function listed(all: Side[]): Listed[] {
  const found = new Map<string, Listed>();
  for (const [nth, { detail }] of all.entries()) {
    for (const metric of detail.metrics) {
      const key = keyOf(metric);
      const [scale, unit] = shownIn(metric);
      const one = found.get(key) ?? { key, metric: metric.metric, of: metric.of, meaning: metric.meaning, unit, source: sourceOf(metric.metric), means: all.map(() => null), varies: false };
      const { mean, varies } = summary(metric, detail.clocks[metric.clock] ?? [], detail.window);
      one.means[nth] = mean === null ? null : mean * scale;
      one.varies ||= varies;
      found.set(key, one);
    }
  }
  return [...found.values()].toSorted((a, b) => a.source.localeCompare(b.source));
}

/** The most informative metrics of a load, if they are present and vary. */
export function defaults(list: Listed[], alone: boolean): string[] {
  const device = busiest(list);
  const wanted = [
    ...['user', 'system', 'iowait', 'steal'].map((part) => `cpu.${part}_us all`),
    ...(device === null ? [] : [`disk.read_bytes ${device}`, `disk.write_bytes ${device}`]),
    'pg.wal.bytes',
    ...['checkpoint', 'bgwriter', 'backend'].map((who) => `pg.${who}.buffers_written`),
    'pg.database.blks_read',
  ];
  const there = wanted.filter((key) => list.some((one) => one.key === key && one.varies));
  // With two trials each metric has a lane.
  return alone ? there : there.filter((key) => !/iowait|steal|bgwriter|blks/.test(key));
}

/** The lanes of selected metrics: related metrics of one trial share one; with two trials, each has its own. */
export function metricLanes(all: Side[], keys: string[]): Lane[] {
  const lanes = new Map<string, Lane>();
  for (const key of new Set(keys)) {
    for (const [side, one] of all.entries()) {
      const { detail } = one;
      const metric = detail.metrics.find((metric) => keyOf(metric) === key);
      if (!metric) continue;
      const [together, title, name] = family(metric);
      const at = all.length > 1 ? key : together;
      const [scale, unit] = shownIn(metric);
      const lane = lanes.get(at) ?? { key: at, title: all.length > 1 ? key : title, unit, better: null, log: false, fromZero: metric.rate, lines: [] };
      const scaled = (values: (number | null)[] | null) => (scale === 1 ? values : (values?.map((one) => (one === null ? null : one * scale)) ?? null));
      const x = (detail.clocks[metric.clock] ?? []).map((us) => seconds(us, one));
      lane.lines.push({
        name: all.length > 1 ? (metric.of ?? metric.metric) : name,
        side,
        colour: all.length > 1 ? (all[side]?.colour ?? '') : `var(--series-${lane.lines.length % 8})`,
        track: new Track(x, scaled(metric.values) ?? [], scaled(metric.low), scaled(metric.high)),
      });
      lanes.set(at, lane);
    }
  }
  return [...lanes.values()];
}

/** CPU time per time is the number of busy CPUs. */
function shownIn({ metric, unit }: Metric): [scale: number, unit: string] {
  return unit === 'µs/s' && /^(cpu|role)\./.test(metric) ? [1e-6, 'CPUs'] : [1, unit];
}

/** Key of a metric's lane, the lane's title, and the metric's name in it. */
function family({ metric, of }: Metric): [key: string, title: string, name: string] {
  const behind = of === null ? '' : ` ${of}`;
  const cpu = /^cpu\.(\w+)_us$/.exec(metric)?.[1];
  if (cpu) return [`cpu${behind}`, of === 'all' ? 'CPU time, all processors' : `CPU time,${behind}`, cpu];
  const disk = /^disk\.(read|write)_bytes$/.exec(metric)?.[1];
  if (disk) return [`disk${behind}`, `Disk${behind}`, disk];
  const buffers = /^pg\.(checkpoint|bgwriter|backend)\.buffers_written$/.exec(metric)?.[1];
  if (buffers) return ['buffers', 'Buffers written', buffers];
  return [metric, metric, of ?? metric];
}

function busiest(list: Listed[]): string | null {
  const by = new Map<string, number>();
  for (const { metric, of, means } of list) {
    if (of !== null && /^disk\.(read|write)_bytes$/.test(metric)) by.set(of, (by.get(of) ?? 0) + means.reduce<number>((sum, mean) => sum + (mean ?? 0), 0));
  }
  return [...by].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

function sourceOf(metric: string): string {
  const parts = metric.split('.');
  return parts.slice(0, parts[0] === 'pg' && parts.length > 2 ? 2 : 1).join('.');
}

function summary({ values }: Metric, clock: number[], window: { start_us: number; end_us: number } | null): { mean: number | null; varies: boolean } {
  const first = window ? firstAtOrAfter(clock, window.start_us) : 0;
  const end = window ? firstAtOrAfter(clock, window.end_us + 1) : clock.length;
  let [sum, n, low, high] = [0, 0, Infinity, -Infinity];
  for (let i = first; i < end; i += 1) {
    const value = values[i];
    if (value === null || value === undefined) continue;
    [sum, n] = [sum + value, n + 1];
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { mean: n === 0 ? null : sum / n, varies: high > low };
}
