import { describe, expect, test } from 'vitest';
import { isWhole, panned, thin, Track, within, zoomed } from '../../src/trial/timeline';

/** Reproducible random numbers. */
function noise(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

const seconds = (n: number) => Array.from({ length: n }, (_, at) => at);

describe('the extremes of any part', () => {
  test('are those of all values', () => {
    const next = noise(7);
    const values = seconds(1037).map(() => (next() < 0.1 ? null : next() * 1000 - 500));
    const track = new Track(seconds(1037), values);
    for (let round = 0; round < 500; round += 1) {
      const [from, to] = [Math.floor(next() * 1037), Math.floor(next() * 1037)].toSorted((a, b) => a - b) as [number, number];
      const known = values.slice(from, to + 1).filter((value) => value !== null);
      expect(track.extremes({ from, to })).toEqual(known.length === 0 ? null : [Math.min(...known), Math.max(...known)]);
    }
  });

  test('are those of merged values, if there are any', () => {
    const track = new Track([0, 1, 2], [5, 6, null], [1, 6, null], [9, 6, null]);
    expect(track.extremes({ from: 0, to: 2 })).toEqual([1, 9]);
    expect(track.extremes({ from: 2, to: 2 })).toBeNull();
  });
});

describe('thinned', () => {
  test('few values are all drawn, and one more beyond each edge', () => {
    const track = new Track(seconds(10), [0, 1, 2, null, 4, 5, 6, 7, 8, 9]);
    expect(thin(track, { from: 2, to: 5 }, 100)).toEqual({ dense: false, x: [1, 2, 3, 4, 5], y: [1, 2, NaN, 4, 5], band: { x: [], low: [], high: [] } });
  });

  test('of a hundred thousand values only the extremes of each column are drawn, and no spike is lost', () => {
    const next = noise(3);
    const values = seconds(100_000).map(() => next());
    values[77_777] = 50;
    values[33_333] = -50;
    const track = new Track(seconds(100_000), values);
    const { x, y } = thin(track, { from: 0, to: 99_999 }, 800);
    expect(x.length).toBeLessThanOrEqual(2 * 801);
    expect(Math.max(...y)).toBe(50);
    expect(Math.min(...y)).toBe(-50);
    const column = Math.floor(77_777 / (99_999 / 800));
    expect(x[y.indexOf(50)]).toBeCloseTo((column + 0.5) * (99_999 / 800), 6);
    expect(x).toEqual(x.toSorted((a, b) => a - b));
  });

  test('every value is between the extremes that are drawn of its column', () => {
    const next = noise(11);
    const values = seconds(5000).map(() => next());
    const track = new Track(seconds(5000), values);
    const shown = { from: 1000, to: 3000 };
    const { x, y } = thin(track, shown, 100);
    for (let column = 0; column < 100; column += 1) {
      const middle = 1000 + (column + 0.5) * 20;
      const drawn = y.filter((_, at) => x[at] === middle);
      const of = values.slice(1000 + column * 20 - (column === 0 ? 1 : 0), 1000 + (column + 1) * 20);
      expect([Math.min(...drawn), Math.max(...drawn)]).toEqual([Math.min(...of), Math.max(...of)]);
    }
  });

  test('a gap stays one', () => {
    const track = new Track(seconds(4000), seconds(4000).map((at) => (at >= 1000 && at < 2000 ? null : 1)));
    const { x, y } = thin(track, { from: 0, to: 3999 }, 100);
    expect(x.filter((_, at) => Number.isNaN(y[at])).length).toBeGreaterThan(20);
    for (const [at, value] of y.entries()) expect(Number.isNaN(value)).toBe((x[at] ?? 0) > 1000 && (x[at] ?? 0) < 2000);
  });

  test('merged values keep their band', () => {
    const n = 4000;
    const track = new Track(seconds(n), seconds(n).map(() => 5), seconds(n).map((at) => (at === 1234 ? -3 : 4)), seconds(n).map((at) => (at === 2345 ? 30 : 6)));
    const { y, band } = thin(track, { from: 0, to: n - 1 }, 200);
    expect([Math.min(...y), Math.max(...y)]).toEqual([5, 5]);
    expect([Math.min(...band.low), Math.max(...band.high)]).toEqual([-3, 30]);
  });
});

test('the value at a moment is the nearest one, if it is near', () => {
  const track = new Track([0.5, 1.5, 2.5, 6.5], [1, null, 3, 4]);
  expect([0.4, 0.99, 1.4, 2.4, 4.5, 6.6, 9].map((moment) => track.nearest(moment))).toEqual([0, 0, null, 2, null, 3, null]);
});

describe('the part that is shown', () => {
  const whole = { from: 0, to: 100 };

  test('is the whole range without a choice, and never more', () => {
    expect(within(null, whole)).toEqual(whole);
    expect(within({ from: -20, to: 30 }, whole)).toEqual({ from: 0, to: 50 });
    expect(within({ from: 90, to: 120 }, whole)).toEqual({ from: 70, to: 100 });
    expect(within({ from: -1000, to: 1000 }, whole)).toEqual(whole);
    expect(within({ from: 50, to: 50 }, whole).to).toBeCloseTo(50.1, 9);
  });

  test('is zoomed about a time that stays where it is', () => {
    expect(zoomed({ from: 20, to: 60 }, 30, 0.5, whole)).toEqual({ from: 25, to: 45 });
    expect(isWhole(zoomed({ from: 20, to: 60 }, 30, 100, whole), whole)).toBe(true);
  });

  test('is moved within the whole range', () => {
    expect(panned({ from: 20, to: 60 }, 15, whole)).toEqual({ from: 35, to: 75 });
    expect(panned({ from: 20, to: 60 }, 1000, whole)).toEqual({ from: 60, to: 100 });
  });
});
