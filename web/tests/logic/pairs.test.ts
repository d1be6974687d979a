/** The chart of sessions: which comparisons share it, and its scale. */

import { expect, test } from 'vitest';
import { changeText, notes, pairings, reach, sessionsText, ticks } from '../../src/overview/pairs';
import { pairs } from '../../test-results/pairs';

const figures = pairs.paired.flatMap((one) => one.figures);

test('comparisons of the same sides share a chart, with what their cells have in common', () => {
  const [one, ...others] = pairings(pairs.paired);
  expect(others).toEqual([]);
  expect(one?.common).toEqual(['select-only', 'scale 10']);
  expect(one?.comparisons.map(({ cell }) => cell)).toEqual(['clients 1', 'clients 2', 'clients 4', 'clients 8']);
});

test('the scale has room for intervals and margins, and for most sessions', () => {
  const far = reach(figures);
  for (const { ci99_low, ci99_high, margin } of figures) {
    for (const end of [ci99_low ?? 0, ci99_high ?? 0, (margin ?? 1) - 1]) expect(Math.abs(Math.log1p(end))).toBeLessThanOrEqual(far);
  }
  const inside = figures.flatMap(({ sessions }) => sessions).filter(({ change }) => Math.abs(Math.log1p(change)) <= far);
  expect(inside.length).toBeGreaterThan(0.95 * figures.flatMap(({ sessions }) => sessions).length);
});

test('ticks are round and within the scale', () => {
  expect(ticks(Math.log(1.12))).toEqual([-0.1, -0.05, 0, 0.05, 0.1]);
  expect(ticks(Math.log(1.025))).toEqual([-0.02, -0.01, 0, 0.01, 0.02]);
  expect(ticks(Math.log(2.5))).toEqual([-0.5, 0, 0.5, 1]);
});

test('an open comparison says how much is left', () => {
  const [decided, open] = [figures[0], figures.find(({ verdict }) => verdict === 'INCONCLUSIVE')];
  if (!decided || !open) throw new Error('the fixture has no open comparison');
  expect(sessionsText(decided)).toBe('45 sessions');
  expect(sessionsText(open)).toMatch(/^45 sessions, about \d+ more: [\d.]+ (s|min|h)/);
  expect(changeText(open)).toMatch(/^−\d.\d% \(−\d.\d% to [−+]\d.\d%\)$/);
  expect(notes(pairs.paired)).toEqual(['1 session not used: a side is invalid.', 'Paused servers used up to 1.0% of the CPU time of their own load.']);
});
