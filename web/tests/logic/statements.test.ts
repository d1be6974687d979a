import { expect, test } from 'vitest';
import { changes, mark, matching, ordered } from '../../src/overview/statements';
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
