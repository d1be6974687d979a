/** Series over time, however many points they have: what of them is seen in a part of the time, and which part that is. */

/** A part of the time, in seconds. */
export interface Range {
  from: number;
  to: number;
}

/** The smallest part that can be shown, in seconds. */
const LEAST = 0.1;
/** Readings that one of the next level stands for. */
const FANOUT = 4;

const NONE = new Float64Array(0);

/** The least and greatest of any part of a series, without reading all of it. NaN is what is missing. */
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
        // NaN is neither less nor more.
        if (value(lows, i) < value(next[0], at)) next[0][at] = value(lows, i);
        if (value(highs, i) > value(next[1], at)) next[1][at] = value(highs, i);
      }
      this.levels.push(next);
    }
  }

  /** Of the readings from `i` up to, not with, `j`; null where all of them are missing. */
  of(i: number, j: number): [low: number, high: number] | null {
    let low = Infinity;
    let high = -Infinity;
    // A hundred thousand times while it is moved about: nothing is made on the way.
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

/** A series: a value at each of ascending times, in seconds; where it stands for several, the least and greatest of them. */
export class Track {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly low: Float64Array | null;
  readonly high: Float64Array | null;
  /** The typical time from one value to the next. */
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

  /** The first value at or after a time. */
  from(time: number): number {
    return firstAtOrAfter(this.x, time);
  }

  /** The value nearest to a time; null where the next one is too far away, or is missing. */
  nearest(time: number): number | null {
    const after = this.from(time);
    const before = after - 1;
    const at = time - value(this.x, before) < value(this.x, after) - time || after >= this.x.length ? before : after;
    const near = Math.abs(value(this.x, at) - time) <= Math.max(this.step, 1e-6);
    return near && !Number.isNaN(value(this.y, at)) ? at : null;
  }

  /** The least and greatest in a part of the time, those within its values too. */
  extremes({ from, to }: Range): [low: number, high: number] | null {
    const [i, j] = [this.from(from), this.from(to + 1e-9)];
    return (this.envelope ?? this.values).of(i, j) ?? this.values.of(i, j);
  }

  /** Of one pixel's values, or of those between their extremes. */
  between(i: number, j: number, enveloped: boolean): [low: number, high: number] | null {
    return (enveloped ? this.envelope : this.values)?.of(i, j) ?? null;
  }
}

/** What is drawn of a series; NaN breaks the line. */
export interface Drawn {
  /** Whether it is columns of pixels, each with its least and greatest value, that are drawn. */
  dense: boolean;
  x: number[];
  y: number[];
  /** The band of what is between its values; empty where each stands alone. */
  band: { x: number[]; low: number[]; high: number[] };
}

/**
 * What is seen of a series in so many columns of pixels: every value where they are few; else, in each column, the least and
 * the greatest, so that no spike is lost.
 */
export function thin(track: Track, shown: Range, columns: number): Drawn {
  const drawn: Drawn = { dense: false, x: [], y: [], band: { x: [], low: [], high: [] } };
  // One more on each side: the line goes on beyond the edge.
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
      // The end that is nearer to where the line is comes first.
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

/** As much as there is, where nothing is chosen; else what is chosen, as far as there is anything. */
export function within(chosen: Range | null, whole: Range): Range {
  if (!chosen) return whole;
  const length = Math.min(Math.max(chosen.to - chosen.from, Math.min(LEAST, whole.to - whole.from)), whole.to - whole.from);
  const from = Math.min(Math.max(chosen.from, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** Another length by a factor, so that a time stays where it is. */
export function zoomed(shown: Range, at: number, factor: number, whole: Range): Range {
  return within({ from: at - (at - shown.from) * factor, to: at + (shown.to - at) * factor }, whole);
}

/** The same length, so much later. */
export function panned(shown: Range, by: number, whole: Range): Range {
  return within({ from: shown.from + by, to: shown.to + by }, whole);
}

/** Whether it is all there is. */
export function isWhole(shown: Range, whole: Range): boolean {
  const near = (whole.to - whole.from) / 1e6;
  return shown.from - whole.from < near && whole.to - shown.to < near;
}

/** Where the first of ascending times stands that is not before a time. */
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
