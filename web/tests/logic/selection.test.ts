import { expect, test } from 'vitest';
import { columnKey, formatSelection, isChosen, levelsOf, parseSelection } from '../../src/url';
import { view } from '../../test-results/view';

test('a selection reads what it writes', () => {
  const selection = {
    levels: { workload: 'tpcb-like', scale: '10' },
    hidden: ['18_default', '9.6_big & small'],
    trial: '01KAK3W8XQ5T2M9HC4ZP7V0001',
    flame: { profile: '1', from: 'load;postgres;f (x) [k]' },
    theme: 'dark' as const,
  };
  expect(parseSelection(`#${formatSelection(selection)}`)).toEqual(selection);
});

test('nothing chosen leaves the address as it is', () => {
  expect(formatSelection(parseSelection(''))).toBe('');
});

test('what the address can not mean is not chosen', () => {
  expect(parseSelection('#theme=pink&x=1')).toEqual({ levels: {}, hidden: [], trial: null, flame: {}, theme: 'auto' });
});

test('a level chooses its panels, and one that no panel has chooses nothing', () => {
  const chosen = (fragment: string) =>
    view.panels.filter((panel) => isChosen(panel, parseSelection(fragment), view.panels)).map((panel) => panel.workload);
  expect(levelsOf('workload', view.panels)).toEqual(['select-only', 'tpcb-like']);
  expect(chosen('#workload=tpcb-like')).toEqual(['tpcb-like']);
  expect(chosen('#workload=tpcc')).toEqual(['select-only', 'tpcb-like']);
  expect(chosen('#workload=tpcb-like&scale=10')).toEqual(['tpcb-like']);
});

test('every column has a key of its own', () => {
  expect(new Set(view.columns.map(columnKey)).size).toBe(view.columns.length);
});
