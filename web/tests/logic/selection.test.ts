import { expect, test } from 'vitest';
import { columnKey, formatSelection, isChosen, isStep, levelsOf, parseSelection } from '../../src/data/url';
import { view } from '../../test-results/view';

test('a selection is parsed as it is formatted', () => {
  const selection = {
    page: 'trial' as const,
    run: '01KAK3W8XQ5T2M9HC4ZP7V0000',
    levels: { workload: 'tpcb-like', scale: '10' },
    hidden: ['18_default', '9.6_big & small'],
    trial: '01KAK3W8XQ5T2M9HC4ZP7V0001',
    against: '01KAK3W8XQ5T2M9HC4ZP7V0002',
    zoom: { from: -1.5, to: 60 },
    metrics: ['pg.wal.bytes', 'cpu.user_us all'],
    level: '1a2b3c4d5e6f',
    verdicts: { sort: '-change', kind: 'worse' },
    statements: { find: 'orders', of: '00ff00ff00ff00ff' },
    scales: { clients: '16', column: '18_default' },
    difference: { of: '18_default', against: '13_default' },
    history: { over: 'version' },
    flame: { profile: '1', from: 'load;postgres;f (x) [k]' },
    theme: 'dark' as const,
  };
  expect(parseSelection(`#${formatSelection(selection)}`)).toEqual(selection);
});

test('an empty selection does not change the address', () => {
  expect(formatSelection(parseSelection(''))).toBe('');
});

test('invalid parts of the address are ignored', () => {
  expect(parseSelection('#theme=pink&x=1&page=nowhere&zoom=9-3')).toEqual(parseSelection(''));
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

test('pages, trials and levels are history entries; themes and hovered trials are not', () => {
  const step = (from: string, to: string) => isStep(parseSelection(from), parseSelection(to));
  expect(step('#', '#page=history')).toBe(true);
  expect(step('#page=trial&trial=A', '#page=trial&trial=B')).toBe(true);
  expect(step('#', '#workload=tpcb-like')).toBe(true);
  expect(step('#trial=A', '#trial=B&theme=dark')).toBe(false);
  expect(step('#page=trial&trial=A', '#page=trial&trial=A&zoom=3-9')).toBe(false);
});
