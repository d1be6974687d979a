import { expect, test } from 'vitest';
import { allTrials, distinguishing, commonN, title } from '../../src/data/trials';
import { levelsOf } from '../../src/data/url';
import { view } from '../../test-results/view';

test('every trial is listed once', () => {
  const ids = allTrials(view).map(({ trial }) => trial.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBe(view.runs.reduce((sum, run) => sum + run.trials, 0));
});

test('the common n is that of most cells', () => {
  expect(view.panels.map(commonN)).toEqual([3, 3]);
});

test('a panel on a database of the user has its name in place of a scale', () => {
  const [first] = view.panels;
  if (!first) throw new Error('there is no panel');
  const own = { ...first, workload: 'append', scale: null, dataset: 'shop' };
  expect(title(own)).toBe('append, data set shop');
  expect(levelsOf('scale', [own, { ...own, scale: 10, dataset: null }])).toEqual(['shop', '10']);
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
