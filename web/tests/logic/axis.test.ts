import { expect, test } from 'vitest';
import { along, linear, logTicks, tickLabel, ticks, timeLabel, timeTicks } from '../../src/trial/axis';

test('ticks are round, in bytes by powers of two', () => {
  expect(ticks(0, 547, 4)).toEqual([0, 200, 400]);
  expect(ticks(0, 0.7, 4)).toEqual([0, 0.2, 0.4, 0.6]);
  expect(ticks(0, 20e6, 4, 'B/s').map((tick) => tickLabel(tick, 'B/s'))).toEqual(['0', '8 MiB', '16 MiB']);
  expect(timeTicks({ from: 0, to: 600 }, 6)).toEqual([0, 120, 240, 360, 480, 600]);
  expect(logTicks(800, 90_000)).toEqual([1000, 2000, 5000, 10_000, 20_000, 50_000]);
  expect(logTicks(8, 9e6)).toEqual([10, 1000, 100_000]);
});

test('ticks have the unit that keeps them short', () => {
  expect([0, 250, 2500, 1.5e6].map((us) => tickLabel(us, 'µs'))).toEqual(['0', '250 µs', '2.5 ms', '1.5 s']);
  expect([500, 20_000].map((tps) => tickLabel(tps, 'TPS'))).toEqual(['500', '20K']);
  expect([30, 90].map((seconds) => timeLabel(seconds, { from: 0, to: 120 }))).toEqual(['30 s', '90 s']);
  expect([34, 34.5].map((seconds) => timeLabel(seconds, { from: 33, to: 44 }))).toEqual(['34 s', '34.5 s']);
  expect([30, 90, 3725].map((seconds) => timeLabel(seconds, { from: 0, to: 4000 }))).toEqual(['0:30', '1:30', '1:02:05']);
});

test('an axis of rates begins at zero; one of gauges where its values are', () => {
  expect(linear([[90, 100]], true).low).toBe(0);
  expect(linear([[90, 100]], false).low).toBeGreaterThan(80);
  expect(linear([[0, 0]], true)).toEqual({ low: 0, high: 1, log: false });
  expect(along({ low: 1, high: 100, log: true }, 10)).toBeCloseTo(0.5, 9);
});
