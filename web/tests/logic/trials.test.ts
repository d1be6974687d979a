import { expect, test } from 'vitest';
import { allTrials, distinguishing, commonN } from '../../src/data/trials';
import { view } from '../../test-results/view';

test('every trial is listed once', () => {
  const ids = allTrials(view).map(({ trial }) => trial.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBe(view.runs.reduce((sum, run) => sum + run.trials, 0));
});

test('the common n is that of most cells', () => {
  expect(view.panels.map(commonN)).toEqual([3, 3]);
});

test('panels with equal titles are distinguished by levels that not all of them have', () => {
  const [first] = view.panels;
  if (!first) throw new Error('there is no panel');
  const panels = [
    { ...first, protocol: 'simple', conditions: ['pin apart', 'threads 2'] },
    { ...first, protocol: 'prepared', conditions: ['threads 2'] },
  ];
  expect(panels.map((panel) => distinguishing(panel, { ...view, panels }))).toEqual([['simple', 'pin apart'], ['prepared']]);
  expect(panels.map((panel) => distinguishing(panel, { ...view, panels: [panel] }))).toEqual([[], []]);
});
