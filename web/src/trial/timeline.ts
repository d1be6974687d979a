/** Series over time, of any number of points: their visible part, and its time range. */

/** A time range, in seconds. */
export interface Range {
  from: number;
  to: number;
}

/** The smallest range that can be shown, in seconds. */
const MIN_LENGTH = 0.1;
/** Number of readings that one of the next level stands for. */
const FANOUT = 4;

const NONE = new Float64Array(0);

/** Minimum and maximum of any part of a series, without reading all of it. NaN is a missing value. */
class Extremes {
  private readonly levels: [low: Float64Array, high: Float64Array][];

  constructor(low: Float64Array, high: Float64Array) {
    this.levels = [[low, high]];
    for (let below = low.length; below > FANOUT; below = Math.ceil(below / FANOUT)) {
      const [lows, highs] = this.levels.at(-1) ?? [low, high];
      const n = Math.ceil(below / FANOUT);
      const next: [Float64Array, Float64Array] = [new Float64Array(n).fill(Infinity), new Float64Array(n).fill(-Infinity)];
      for (let i = 0; i < below; i += 1) {
        const at = Math.floor(i / FANOUT);
        // NaN is neither smaller nor larger.
        if (value(lows, i) < value(next[0], at)) next[0][at] = value(lows, i);
        if (value(highs, i) > value(next[1], at)) next[1][at] = value(highs, i);
      }
      this.levels.push(next);
    }
  }

  /** Extremes of the readings from `i` to before `j`; null if all of them are missing. */
  of(i: number, j: number): [low: number, high: number] | null {
    let low = Infinity;
    let high = -Infinity;
    // Runs a hundred thousand times during a pan: it does not allocate.
    for (let level = 0; i < j && level < this.levels.length; level += 1) {
      const lows = this.levels[level]?.[0] ?? NONE;
      const highs = this.levels[level]?.[1] ?? NONE;
      const last = level === this.levels.length - 1;
      while (i < j && (last || i % FANOUT !== 0 || j - i < FANOUT)) {
        if (value(lows, i) < low) low = value(lows, i);
        if (value(highs, i) > high) high = value(highs, i);
        i += 1;
      }
      while (i < j && j % FANOUT !== 0) {
        j -= 1;
        if (value(lows, j) < low) low = value(lows, j);
        if (value(highs, j) > high) high = value(highs, j);
      }
      i /= FANOUT;
      j /= FANOUT;
    }
    return low <= high ? [low, high] : null;
  }
}

/** A series of values at ascending times, in seconds; a value of several has their minimum and maximum. */
export class Track {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly low: Float64Array | null;
  readonly high: Float64Array | null;
  /** The typical time between values. */
  readonly step: number;
  private readonly values: Extremes;
  private readonly envelope: Extremes | null;

  constructor(x: ArrayLike<number>, y: readonly (number | null)[], low: readonly (number | null)[] | null = null, high: readonly (number | null)[] | null = null) {
    this.x = Float64Array.from(x);
    this.y = numbers(y);
    this.low = low && numbers(low);
    this.high = high && numbers(high);
    this.step = median(this.x);
    this.values = new Extremes(this.y, this.y);
    this.envelope = this.low && this.high && new Extremes(this.low, this.high);
  }

  /** Index of the first value at or after a time. */
  from(time: number): number {
    return firstAtOrAfter(this.x, time);
  }

  /** Index of the value nearest to a time; null if that is too far away, or missing. */
  nearest(time: number): number | null {
    const after = this.from(time);
    const before = after - 1;
    const at = time - value(this.x, before) < value(this.x, after) - time || after >= this.x.length ? before : after;
    const near = Math.abs(value(this.x, at) - time) <= Math.max(this.step, 1e-6);
    return near && !Number.isNaN(value(this.y, at)) ? at : null;
  }

  /** Minimum and maximum in a time range, including those of values that stand for several. */
  extremes({ from, to }: Range): [low: number, high: number] | null {
    const [i, j] = [this.from(from), this.from(to + 1e-9)];
    return (this.envelope ?? this.values).of(i, j) ?? this.values.of(i, j);
  }

  /** Extremes of values, or of their minima and maxima. */
  between(i: number, j: number, enveloped: boolean): [low: number, high: number] | null {
    return (enveloped ? this.envelope : this.values)?.of(i, j) ?? null;
  }
}

/** The drawn points of a series; NaN breaks the line. */
export interface Drawn {
  /** Whether the points are the minimum and maximum of each pixel column. */
  dense: boolean;
  x: number[];
  y: number[];
  /** The band between minima and maxima; empty if each value stands for itself. */
  band: { x: number[]; low: number[]; high: number[] };
}

/**
 * The visible part of a series in `columns` pixel columns: every value if they are few; else the minimum and maximum of
 * each column, so that no spike is lost.
 */
export function thin(track: Track, shown: Range, columns: number): Drawn {
  const drawn: Drawn = { dense: false, x: [], y: [], band: { x: [], low: [], high: [] } };
  // One more on each side: the line continues beyond the edge.
  const first = Math.max(0, track.from(shown.from) - 1);
  const end = Math.min(track.x.length, track.from(shown.to) + 1);
  if (end - first <= 2 * columns) {
    for (let i = first; i < end; i += 1) {
      drawn.x.push(value(track.x, i));
      drawn.y.push(value(track.y, i));
      if (track.low && track.high) band(drawn, value(track.x, i), [value(track.low, i), value(track.high, i)]);
    }
    return drawn;
  }
  drawn.dense = true;
  const width = (shown.to - shown.from) / columns;
  let i = first;
  let last = NaN;
  for (let column = 0; column <= columns && i < end; column += 1) {
    const until = column === columns ? end : Math.min(end, Math.max(i, firstAtOrAfter(track.x, shown.from + (column + 1) * width, i)));
    if (until === i) continue;
    const x = shown.from + (column + 0.5) * width;
    const extremes = track.between(i, until, false);
    if (extremes) {
      const [low, high] = extremes;
      // The end nearer to the line so far comes first.
      const ends = Math.abs(low - last) <= Math.abs(high - last) || Number.isNaN(last) ? [low, high] : [high, low];
      for (const y of low === high ? [low] : ends) {
        drawn.x.push(x);
        drawn.y.push(y);
        last = y;
      }
    } else {
      drawn.x.push(x);
      drawn.y.push(NaN);
    }
    const enveloped = track.between(i, until, true);
    if (enveloped) band(drawn, x, enveloped);
    i = until;
  }
  return drawn;
}

/** The whole range if nothing is selected; else the selection, within the whole range. */
export function within(chosen: Range | null, whole: Range): Range {
  if (!chosen) return whole;
  const length = Math.min(Math.max(chosen.to - chosen.from, Math.min(MIN_LENGTH, whole.to - whole.from)), whole.to - whole.from);
  const from = Math.min(Math.max(chosen.from, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** The range scaled by a factor, with the time `at` kept in place. */
export function zoomed(shown: Range, at: number, factor: number, whole: Range): Range {
  return within({ from: at - (at - shown.from) * factor, to: at + (shown.to - at) * factor }, whole);
}

/** The range moved by `by` seconds. */
export function panned(shown: Range, by: number, whole: Range): Range {
  return within({ from: shown.from + by, to: shown.to + by }, whole);
}

/** Whether it is the whole range. */
export function isWhole(shown: Range, whole: Range): boolean {
  const near = (whole.to - whole.from) / 1e6;
  return shown.from - whole.from < near && whole.to - shown.to < near;
}

/** Index of the first of ascending times at or after a time. */
export function firstAtOrAfter(times: ArrayLike<number>, time: number, since = 0): number {
  let [low, high] = [since, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? NaN) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function band({ band }: Drawn, x: number, [low, high]: [number, number]) {
  band.x.push(x);
  band.low.push(low);
  band.high.push(high);
}

function value(of: Float64Array, at: number): number {
  return of[at] ?? NaN;
}

function numbers(values: readonly (number | null)[]): Float64Array {
  return Float64Array.from(values, (one) => one ?? NaN);
}

function median(x: Float64Array): number {
  const steps = x.slice(1).map((to, n) => to - value(x, n)).toSorted();
  return steps[steps.length >> 1] ?? 1;
}
