import { expect, test } from 'vitest';
import { changes, mark, matching, ordered } from '../../src/overview/statements';
import { sentence, table, timedSides } from '../../src/overview/overtime';
import { points, sampled, waitRows, waitsTable } from '../../src/overview/waits';
import type { PlayedStatement, Statements } from '../../src/data/generated/view';

function statement(text: string, change: number | null, verdict: string): PlayedStatement {
  return {
    fingerprint: text.length.toString(16).padStart(16, '0'),
    text,
    calls: [3, 3],
    failures: [{}, {}],
    new_failures: verdict === 'REGRESSION' ? ['57014'] : [],
    mean_us: [10, change === null ? null : 10 * (1 + change)],
    change,
    ci99_low: null,
    ci99_high: null,
    p: null,
    verdict,
    share: change,
    plans: [['Index Scan using t_v on t'], [verdict === 'REGRESSION' ? 'Seq Scan on t' : 'Index Scan using t_v on t']],
    plan_changes: verdict === 'REGRESSION' ? [{ before: 'Index Scan using t_v on t', after: 'Seq Scan on t' }, { before: null, after: 'Sort by v' }, { before: 'Limit', after: null }] : [],
    latency: [null, null],
    over_time: [null, null],
    waits: [null, null],
    without_waits: [null, null],
  };
}

const slower = statement('select v from t', 2, 'REGRESSION');
const same = statement('select 1', 0, 'EQUIVALENT');
const unknown = statement('commit', null, 'INSUFFICIENT');
const compared: Statements = { baseline: 'A', variant: 'B', trace: '', trials: [3, 3], total_us: [1, 2], margin: 1.05, sentences: [], statements: [same, unknown, slower] };

test('statements are found by text, verdict, plan and error', () => {
  expect(matching(compared, '')).toEqual([same, unknown, slower]);
  expect(matching(compared, 'SELECT')).toEqual([same, slower]);
  for (const find of ['regression', 'seq scan', '57014', slower.fingerprint]) expect(matching(compared, find)).toEqual([slower]);
});

test('what is unknown comes last in either order', () => {
  const rows = compared.statements;
  expect(ordered(rows, undefined)).toEqual(rows);
  expect(ordered(rows, 'change')).toEqual([same, slower, unknown]);
  expect(ordered(rows, '-change')).toEqual([slower, same, unknown]);
  expect(ordered(rows, 'statement')).toEqual([unknown, same, slower]);
  expect(ordered(rows, 'verdict')[0]).toBe(slower);
});

test('changes of plans are in words', () => {
  expect(changes(slower)).toBe('Index Scan using t_v on t → Seq Scan on t; added Sort by v; without Limit');
  expect(changes(same)).toBe('');
  expect([slower, same, unknown].map(({ verdict }) => mark(verdict))).toEqual(['worse', 'same', 'open']);
});

test('a statement over time is in a table of slices with calls, and in a sentence of quarters', () => {
  const calls = Array.from({ length: 100 }, (_, n) => (n % 50 === 1 ? 2 : 0));
  const times = { slice_us: 500_000, calls, mean_us: calls.map((calls, n) => (calls > 0 ? 1000 * (n + 1) : null)) };
  expect(timedSides(slower, ['A', 'B'])).toEqual([]);
  const sides = timedSides({ ...slower, over_time: [null, times] }, ['A', 'B']);
  expect(table(sides).rows).toEqual([['B', 0.5, 1, 2, 2000], ['B', 25.5, 26, 2, 52000]]);
  expect(sentence(sides)).toBe('B: 2.00 ms, –, 52.0 ms, –');
});

test('waits of both sides are in one list; a side without samples has no shares', () => {
  const wait = (wait: string, samples: number, share: number) => ({ wait, samples, share });
  const both = { ...slower, waits: [[wait('CPU', 9, 0.9), wait('IO:DataFileRead', 1, 0.1)], [wait('IO:DataFileRead', 20, 1)]] as PlayedStatement['waits'] };
  expect(waitRows(both)).toEqual([
    { wait: 'IO:DataFileRead', samples: [1, 20], shares: [0.1, 1] },
    { wait: 'CPU', samples: [9, 0], shares: [0.9, 0] },
  ]);
  expect(waitRows(both).map(({ shares }) => points(shares))).toEqual(['+90', '−90']);
  expect(sampled(both)).toEqual([10, 20]);
  expect(waitsTable(both, ['A', 'B']).rows[1]).toEqual(['CPU', 9, 0.9, 0, 0]);
  const one = { ...both, waits: [null, []] as PlayedStatement['waits'] };
  expect(waitRows(one)).toEqual([]);
  expect(sampled(one)).toEqual([null, 0]);
  const half = { ...both, waits: [[wait('CPU', 9, 1)], []] as PlayedStatement['waits'] };
  expect(waitRows(half).map(({ shares }) => [shares, points(shares)])).toEqual([[[1, null], '–']]);
});
