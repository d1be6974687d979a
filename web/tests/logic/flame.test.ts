import { expect, test } from 'vitest';
import { at, bars, calls, changes, found, functions, strength } from '../../src/profiles/flame';
import type { Samples } from '../../src/profiles/flame';
import type { Frame } from '../../src/data/generated/view';

function frame(name: string, self: number, children: Frame[] = [], margin: number | null = null): Frame {
  return { name, self, total: children.reduce((sum, child) => sum + child.total, self), self_margin: margin, margin, children };
}

const NOW = frame('load', 0, [
  frame('postgres', 0, [frame('main', 10, [frame('scan', 20, [frame('read', 30), frame('scan', 10)]), frame('send_[k]', 30)])]),
]);
const BEFORE = frame('load', 0, [frame('postgres', 0, [frame('main', 10, [frame('scan', 40), frame('parse', 50)])])]);

test('bars are as wide as their samples and below their callers', () => {
  const drawn = bars(calls(NOW, null), 0);
  expect(drawn.map(({ call, row, left, width }) => [call.name, row, left, width])).toEqual([
    ['load', 0, 0, 1],
    ['postgres', 1, 0, 1],
    ['main', 2, 0, 1],
    ['scan', 3, 0, 0.6],
    ['read', 4, 0, 0.3],
    ['scan', 4, 0.3, 0.1],
    ['send_[k]', 3, 0.6, 0.3],
  ]);
  expect(bars(calls(NOW, null), 0.2).length).toBe(6);
});

test('a function alone is as wide as the graph, below its callers', () => {
  const scan = at(calls(NOW, null), 'load;postgres;main;scan');
  const drawn = bars(scan, 0);
  expect(drawn.map(({ call, row, width, above }) => [call.name, row, width, above])).toEqual([
    ['load', 0, 1, true],
    ['postgres', 1, 1, true],
    ['main', 2, 1, true],
    ['scan', 3, 1, false],
    ['read', 4, 0.5, false],
    ['scan', 4, 10 / 60, false],
  ]);
  expect(at(scan, 'load;other').name).toBe('scan');
  expect(at(calls(NOW, null), 'load;postgres;gone').name).toBe('postgres');
});

test('a function that calls itself is counted once', () => {
  const all = functions(calls(NOW, null), null);
  expect(all.map(({ name, self, total }) => [name, self.now, total.now])).toEqual([
    ['scan', 30, 60],
    ['read', 30, 30],
    ['send_[k]', 30, 30],
    ['main', 10, 100],
  ]);
  expect(found(calls(NOW, null), 'SCAN').now).toBe(60);
  expect(found(calls(NOW, null), 're').now).toBe(100);
});

test('a difference is per transaction, and zero where it may be chance', () => {
  const change = changes({ now: 2, before: 1 });
  const root = calls(NOW, BEFORE);
  const all = functions(root, change);
  expect(all.map(({ name }) => name).slice(0, 3)).toEqual(['read', 'send_[k]', 'parse']);
  const samples = (now: number, before: number, margins: [number | null, number | null] = [null, null]) => ({
    now,
    before,
    margin: { now: margins[0], before: margins[1] },
  });
  expect(change?.(samples(30, 50))).toMatchObject({ now: 60, before: 50, more: 10 });
  const of = (samples: Samples) => strength(change?.(samples) ?? { now: 0, before: 0, more: 0, chance: 0 });
  expect(of(samples(30, 50))).toBe(0);
  expect(of(samples(0, 50))).toBe(1);
  expect(changes({ now: 2, before: null })).toBeNull();
  expect(bars(root, 0).some(({ call }) => call.name === 'parse')).toBe(false);
  // 200 samples more are far beyond the sampling error, but not beyond what the trials differ by.
  expect(of(samples(300, 400, [null, 130]))).toBeCloseTo(1 / 3);
  expect(of(samples(300, 400, [80, 130]))).toBe(0);
  expect(change?.(samples(300, 400, [80, 130])).chance).toBeCloseTo(Math.hypot(160, 130));
  expect(change?.(samples(300, 400, [1, 1])).chance).toBeCloseTo(1.96 * Math.hypot(2 * Math.sqrt(300), 20));
});

test('functions that are new or gone come first, and margins at several places add up', () => {
  const process = (...children: Frame[]) => frame('load', 0, [frame('postgres', 0, children)]);
  const now = process(frame('a', 900, [frame('b', 60, [], 5)], 30), frame('new', 40, [], 3), frame('b', 40, [], 4));
  const before = process(frame('a', 600, [frame('b', 90, [], 6)], 30), frame('few', 2, [], 1));
  const all = functions(calls(now, before), changes({ now: 1, before: 1 }));
  expect(all.map(({ name }) => name)).toEqual(['new', 'a', 'b', 'few']);
  expect(all[2]?.self).toEqual({ now: 100, before: 90, margin: { now: 9, before: 6 } });
});
