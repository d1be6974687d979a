/** The chart of a bisection: its bars, scales and labels. */

import { expect, test } from 'vitest';
import { areBisections, axisLabels, bars, description, direction, pointed, position, probability, reachOfBars, reachOfChanges, reason, stepped, table, ticksOfChanges, withInterval } from '../../src/overview/bisection';
import type { Bisection } from '../../src/data/generated/view';
import { bisecting } from '../../test-results/bisecting';
import { bisection as view } from '../../test-results/bisection';
import { pairs } from '../../test-results/pairs';

const found = only(view.bisections);
const open = only(bisecting.bisections);

function only(all: Bisection[]): Bisection {
  const [first] = all;
  if (!first || all.length > 1) throw new Error('the fixture has one bisection');
  return first;
}

/** The levels of the fixture, so many times. */
function times(n: number): Bisection {
  const [baseline, ...others] = found.levels;
  if (!baseline) throw new Error('no levels');
  const levels = Array.from({ length: n }, () => others).flat().map((level) => ({ ...level, probability: (level.probability ?? 0) / n }));
  return { ...found, levels: [baseline, ...levels] };
}

test('a level has a bar of its own where there is room, else several have one', () => {
  expect(bars(found, 1000).map(({ from, to }) => [from, to])).toEqual(found.levels.slice(1).map((_, at) => [at + 1, at + 1]));
  const many = times(20);
  expect(many.levels.length).toBe(1281);
  for (const width of [280, 700, 1100]) {
    const drawn = bars(many, width);
    expect(width / drawn.length).toBeGreaterThan(3.5);
    expect(drawn.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, nth) => from + nth))).toEqual([...many.levels.keys()].slice(1));
    const sum = (shares: number[]) => shares.reduce((a, b) => a + b, 0);
    expect(sum(drawn.map(({ share }) => share))).toBeCloseTo(sum(many.levels.map(({ probability }) => probability ?? 0)));
    for (const { from, to, top } of drawn) {
      expect(many.levels[top]?.probability).toBe(Math.max(...many.levels.slice(from, to + 1).map(({ probability }) => probability ?? 0)));
    }
  }
});

test('before both ends are known to differ there are no bars', () => {
  const levels = found.levels.map((level) => ({ ...level, probability: null }));
  expect(bars({ ...found, levels }, 500)).toEqual([]);
  expect(reachOfBars([])).toBe(0.001);
  expect(reachOfBars(bars(found, 1000))).toBe(1);
});

test('the scale has the measured levels, and intervals unless they are much wider', () => {
  const [low, high] = reachOfChanges(found);
  for (const { change } of found.levels) {
    if (change === null) continue;
    expect(position(change)).toBeGreaterThan(low);
    expect(position(change)).toBeLessThan(high);
  }
  const levels = found.levels.map((level, at) => (at === 64 ? { ...level, ci95_low: -0.999, ci95_high: 50 } : level));
  const wide = reachOfChanges({ ...found, levels });
  expect(wide[1] - wide[0]).toBeLessThan(3 * (high - low));
});

test('ticks are round, few, and have zero', () => {
  expect(ticksOfChanges([Math.log(0.88), Math.log(1.04)])).toEqual([-0.1, -0.05, 0]);
  expect(ticksOfChanges([Math.log(0.985), Math.log(1.01)])).toEqual([-0.015, -0.01, -0.005, 0, 0.005, 0.01]);
  expect(ticksOfChanges([Math.log(0.5), Math.log(40)])).toContain(0);
  for (const reach of [0.001, 0.02, 0.3, 2, 4]) expect(ticksOfChanges([-reach, reach]).length).toBeLessThanOrEqual(6);
});

test('labels of levels do not hide each other, and the change has one', () => {
  for (const bisection of [found, open, times(20)]) {
    for (const width of [300, 700, 1100]) {
      const labels = axisLabels(bisection, (level) => ((level + 0.5) * width) / bisection.levels.length, width);
      const [first] = bisection.changes;
      if (first) expect(labels.map(({ level }) => level)).toContain(first.first);
      const spans = labels.map(({ x, text, anchor }) => {
        const wide = 7 * text.length;
        const left = anchor === 'start' ? x : anchor === 'end' ? x - wide : x - wide / 2;
        return [left, left + wide] as const;
      });
      for (const [left, right] of spans) {
        expect(left).toBeGreaterThanOrEqual(0);
        expect(right).toBeLessThanOrEqual(width);
        expect(spans.filter((other) => other[0] < right && left < other[1]).length).toBe(1);
      }
    }
  }
});

test('arrow keys go from level to level, and to measured ones', () => {
  const last = found.levels.length - 1;
  expect(stepped(found, null, 'ArrowRight')).toBe(0);
  expect(stepped(found, 5, 'ArrowRight')).toBe(6);
  expect(stepped(found, last, 'ArrowRight')).toBe(0);
  expect(stepped(found, null, 'ArrowLeft')).toBe(last);
  const next = stepped(found, 0, 'ArrowDown');
  expect(next).toBe(found.levels.findIndex(({ change }) => change !== null));
  expect(stepped(found, 41, 'ArrowUp')).toBe(found.changes[0]?.before);
  expect(stepped(found, 3, 'a')).toBe(null);
});

test('the pointer is at the measured level near it, else at the most probable one of the bar', () => {
  const x = (level: number) => level * 10;
  expect(pointed(found, bars(found, 1000), x, 412)).toBe(41);
  const many = times(20);
  const drawn = bars(many, 640);
  const narrow = (level: number) => level / 2;
  const bar = drawn.find(({ from, to }) => many.levels.slice(from, to + 1).every(({ change, unavailable }) => change === null && unavailable === null));
  if (!bar) throw new Error('every bar has a measured level');
  const at = pointed(many, drawn, narrow, narrow(bar.from));
  const near = at !== null && Math.abs(narrow(at) - narrow(bar.from)) <= 4 && many.levels[at]?.change !== null;
  expect(near || at === bar.top).toBe(true);
});

test('figures are in the words of the text', () => {
  expect([0.9995, 0.953, 0.0001, null].map(probability)).toEqual(['>99.9%', '95.3%', '<0.1%', '–']);
  expect(withInterval(-0.052, -0.08, -0.024)).toBe('−5.2% (−8.0% to −2.4%)');
  expect([withInterval(0.01, null, null), withInterval(null, null, null)]).toEqual(['+1.0%', '']);
  expect([direction(-0.1, found), direction(0.1, found), direction(null, found)]).toEqual(['worse', 'better', 'same']);
  const missing = found.levels.filter(({ unavailable }) => unavailable !== null);
  expect(missing.length).toBeGreaterThan(0);
  for (const level of missing) expect(reason(level)).toBe('could not compile PostgreSQL 18.6');
  expect(description(found)).toContain('; found at ');
});

test('the table has every level', () => {
  const { columns, rows } = table(found);
  expect(rows.length).toBe(65);
  expect(columns.map(({ name }) => name)).toContain('change of throughput');
  expect(rows[41]?.slice(0, 2)).toEqual([found.levels[41]?.name, 'Check portals before each execution']);
});

test('only a run that is one is a bisection', () => {
  expect([view, bisecting, pairs].map(areBisections)).toEqual([true, true, false]);
});
