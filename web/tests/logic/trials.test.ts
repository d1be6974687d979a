import { expect, test } from 'vitest';
import { allTrials, usualN } from '../../src/data/trials';
import { view } from '../../test-results/view';

test('every trial is there once', () => {
  const ids = allTrials(view).map(({ trial }) => trial.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBe(view.runs.reduce((sum, run) => sum + run.trials, 0));
});

test('the usual n is that of most cells', () => {
  expect(view.panels.map(usualN)).toEqual([3, 3]);
});
