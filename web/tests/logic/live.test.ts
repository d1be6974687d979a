import { expect, test } from 'vitest';
import type { Interval, LiveEvent, LiveWait, TrialBegins } from '../../src/data/live';
import { after, done, NOTHING, remainingUs, sessions, waiting, type Live } from '../../src/live/state';

const AT = '2026-11-22T20:00:00Z';
const head = {
  kind: 'run' as const,
  format: 1,
  campaign: 'quick',
  pgdyno_version: '0.1.0',
  begun: AT,
  planned: 6,
  cells: [{ cell: '18, 1 client', planned: 3, valid: 1, suspect: 0, invalid: 1 }],
};
const begins = (position: number): LiveEvent => ({
  kind: 'trial_begins', at: AT, position, of: 6, cell: '18, 1 client', cell_index: 0, repeat: 2, attempt: 1, reason: null,
  remaining_us: 60e6, warmup_us: 1e6, duration_us: 10e6, levels: {},
});
const interval = (second: number, waits: LiveWait[] | null = null): Interval => ({
  kind: 'interval', start_us: second * 1e6, width_us: 1e6, phase: 'measure', tps: 100 + second, failed: 0,
  p50_us: 1, p95_us: 2, p99_us: 3, max_us: 4, waits,
});
const ended: LiveEvent = {
  kind: 'trial_ended', at: AT, id: 'T', position: 3, cell_index: 0, repeat: 2, attempt: 1, validity: 'valid', tps: 100, reasons: [],
};
const stateOf = (events: LiveEvent[]) =>
  events.reduce<Live>((live, event) => after(live, { run: event.kind === 'hello' ? null : 'R', event }), NOTHING);

test('the state has the events since the head', () => {
  const run = stateOf([head, begins(3), interval(0), interval(1)]).get('R');
  expect(run?.trial?.position).toBe(3);
  expect(run?.intervals.map(({ tps }) => tps)).toEqual([100, 101]);
  expect(run && done(run)).toBe(1);
});

const session = (repeat: number): LiveEvent => {
  const trial = { ...begins(2 * repeat - 1), repeat } as TrialBegins;
  return { ...trial, side: 'a', other: { ...trial, side: 'b', position: 2 * repeat } };
};

test('a session in pairs has the last interval of each side, and nothing over time', () => {
  const events = [head, session(1), { ...interval(0), side: 'a' as const }, { ...interval(5), side: 'b' as const }, { ...interval(7), side: 'a' as const }];
  const shown = (more: LiveEvent[]) => stateOf([...events, ...more]).get('R')?.sides.map(({ trial, last }) => [trial.side, last?.tps ?? null]);
  expect(stateOf(events).get('R')?.intervals).toEqual([]);
  expect(shown([])).toEqual([['a', 107], ['b', 105]]);
  // When both have ended.
  expect(shown([{ ...(begins(2) as TrialBegins), side: 'b' }])).toEqual([['a', 107], ['b', 105]]);
  expect(shown([session(2)])).toEqual([['a', null], ['b', null]]);
  expect(shown([begins(3)])).toEqual([]);
});

test('sessions compare the throughput of their usable trials, also after another head', () => {
  const stored = (position: number, cell: string, tps: number | null, validity: 'valid' | 'invalid' = 'valid'): LiveEvent => ({
    kind: 'trial', id: `${position}`, campaign: 'quick', cell, position, repeat: Math.ceil(position / 2), attempt: 1, validity, tps, started: null, ended: null,
  });
  const events = [stored(4, 'c', 90), stored(3, 'a', 100), stored(1, 'a', 100), head, stored(2, 'b', 110), stored(5, 'a', 100), stored(6, 'b', 50, 'invalid'), stored(8, 'b', 120)];
  const run = stateOf([head, ...events]).get('R');
  expect(run && sessions(run)).toEqual([{ number: 1, variant: 'b', ratio: 1.1 }, { number: 2, variant: 'c', ratio: 0.9 }]);
});

test('an ended trial is counted if it is usable, and the next one begins empty', () => {
  const run = stateOf([head, begins(3), interval(0), ended, begins(4)]).get('R');
  expect(run && done(run)).toBe(2);
  const invalid = stateOf([head, begins(3), { ...ended, validity: 'invalid' }]).get('R');
  expect(invalid && done(invalid)).toBe(1);
  expect(run?.intervals).toEqual([]);
});

test('a head replaces the known state, and a connection begins empty', () => {
  const restarted = stateOf([head, begins(3), interval(0), ended, head]).get('R');
  expect(restarted && done(restarted)).toBe(1);
  expect(stateOf([head, begins(3), { kind: 'hello', running: [] }]).size).toBe(0);
});

test('events of a run without a head are ignored', () => {
  expect(stateOf([begins(3), interval(0)]).size).toBe(0);
});

test('the remaining time decreases by itself, and is never negative', () => {
  const run = stateOf([head, begins(3)]).get('R');
  expect(run && remainingUs(run, Date.parse(AT) + 20_000)).toBe(40e6);
  expect(run && remainingUs(run, Date.parse(AT) + 90_000)).toBe(0);
});

test('waits are means over the sampled seconds', () => {
  const lock = (sessions: number): LiveWait => ({ session: 'load', type: 'Lock', event: 'tuple', sessions });
  const cpu: LiveWait = { session: 'load', type: 'CPU', event: null, sessions: 3 };
  const idle: LiveWait = { session: 'checkpointer', type: 'Activity', event: 'CheckpointerMain', sessions: 1 };
  const waits = waiting([interval(0, [lock(9)]), interval(1, [lock(2), cpu, idle]), interval(2), interval(3, [lock(6), cpu])], 3);
  expect(waits).toEqual([lock(4), cpu]);
});
