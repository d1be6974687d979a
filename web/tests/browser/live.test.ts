/** The live page: a fleet, and a server that refuses the page at first. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { launch } from '../launch';
import { serve, stop } from '../serve';
import type { Fleet, FleetAgent, LiveEvent, TrialBegins } from '../../src/data/live';

/** What `pgdyno serve --fleet` answers. */
const FLEET: Fleet = {
  agents: [
    agent('big', { labels: ['nvme', '16-cores'], cpus: 16, memory_bytes: 64 * 2 ** 30 }, { running: { run: '01M84CPDWAN18AGAK1PSAV6XG3', campaign: 'versions', block: '4 of 9', since: new Date().toISOString(), trials: 3 } }),
    { ...agent('small', { findings: ['governor: powersave'] }, 'idle'), is_draining: true },
    agent('spare', {}, { load: { agent: 'big', since: new Date().toISOString() } }),
  ],
  runs: [
    {
      run: '01M84CPDWAN18AGAK1PSAV6XG3',
      campaign: 'versions',
      coordinator: 'desk',
      waiting: 2,
      running: [{ block: '4 of 9', agent: 'big' }],
      complete: 5,
      set_aside: [{ block: '2 of 9', reasons: ['agent small died', 'agent big died'] }],
      trials: 23,
    },
  ],
};

function agent(name: string, facts: Partial<FleetAgent['facts']>, state: FleetAgent['state']): FleetAgent {
  const same = { pgdyno_version: '0.2.0', labels: [], cpus: null, memory_bytes: null, kernel: '6.12.9', findings: [] };
  return { facts: { ...same, name, machine: name, ...facts }, state, is_draining: false, trouble: null };
}

/** A page, and the address of a served store without trials. */
async function served(): Promise<{ page: Page; address: string }> {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const store = mkdtempSync(join(tmpdir(), 'pgdyno-live-'));
  onTestFinished(() => { rmSync(store, { recursive: true, force: true }); });
  mkdirSync(join(store, 'trials'));
  const serving = await serve(store, '127.0.0.1:0');
  onTestFinished(() => stop(serving.child));
  const page = await browser.context.newPage();
  return { page, address: serving.address };
}

test('the fleet is shown, also when it does not answer for a while', async () => {
  const { page, address } = await served();
  await page.goto(`${address}#page=live`);
  await page.getByText('No campaign is running').waitFor();
  // Without --fleet.
  expect(await page.getByRole('heading', { name: 'Fleet' }).isVisible()).toBe(false);

  let response: { status: number; json: unknown } = { status: 200, json: FLEET };
  await page.route('**/api/fleet', (route) => route.fulfill(response));
  await page.reload();
  await page.getByRole('heading', { name: 'Fleet' }).waitFor();
  const rows = async (table: string) => (await page.getByRole('table', { name: table }).locator('tbody tr').allInnerTexts()).map((row) => row.split(/\s*\t\s*/));
  const agents = await rows('Agents');
  expect(agents.map(([name, does]) => [name, does?.replace(/[\d.]+ (ms|s|min|h).*/, 'TIME')])).toEqual([
    ['big', 'versions 4 of 9: 3 trials, TIME'],
    ['small', 'stops'],
    ['spare', 'load for big: TIME'],
  ]);
  expect(agents[0]?.slice(2)).toEqual(['nvme 16-cores', '16', '64.0 GiB', '6.12.9', '0.2.0']);
  expect(await rows('Runs and their blocks')).toEqual([['01M84CPDWAN18AGAK1PSAV6XG3', 'versions', 'desk', '2', '1', '5', '1', '23']]);
  await page.getByText('small: governor: powersave').waitFor();
  await page.getByText('was set aside: agent small died; agent big died').waitFor();
  response = { status: 503, json: { error: 'the NATS server does not answer' } };
  await page.getByText('this is its last state: the NATS server does not answer').waitFor();
  expect(await rows('Agents')).toHaveLength(3);
  response = { status: 200, json: { ...FLEET, agents: [] } };
  await page.getByText('No agent answers').waitFor();
  mkdirSync('test-results/pictures', { recursive: true });
  response = { status: 200, json: FLEET };
  await page.getByRole('table', { name: 'Agents' }).waitFor();
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    await page.screenshot({ path: `test-results/pictures/fleet-${width}.png`, fullPage: true });
  }
});

test('a page that is refused because too many follow the server tries again', async () => {
  const { page, address } = await served();
  await page.clock.install();
  let attempts = 0;
  await page.route('**/api/live', (route) => {
    attempts += 1;
    return attempts > 2 ? route.continue() : route.fulfill({ status: 503, json: { error: 'busy' } });
  });
  await page.goto(`${address}#page=live`);
  await page.getByText('too many pages follow it').waitFor();
  const isConnected = async () => {
    await page.clock.runFor(10_000);
    return page.getByText('Connected').isVisible();
  };
  await expect.poll(isConnected, { timeout: 20_000 }).toBe(true);
  expect(attempts).toBe(3);
});

test('a campaign in pairs shows both sides of its session, and the change of those that have ended', async () => {
  const { page, address } = await served();
  const at = new Date().toISOString();
  const cells = ['18 default', '18 large', '18 small'].map((cell) => ({ cell, planned: 3, valid: 0, suspect: 0, invalid: 0 }));
  const trial = { at, attempt: 1 };
  const stored = (position: number, cell: string, tps: number): LiveEvent => ({ kind: 'trial', id: `${position}`, campaign: 'pairs', cell, position, repeat: Math.ceil(position / 2), attempt: 1, validity: 'valid', tps, started: at, ended: at });
  const begins = (side: 'a' | 'b', settings: string): TrialBegins => ({ ...trial, kind: 'trial_begins', position: 5, of: 6, cell: settings, cell_index: 0, repeat: 3, reason: null, remaining_us: 9e6, warmup_us: 0, duration_us: 1e6, levels: { server: '18', settings }, side });
  const load = (side: 'a' | 'b', tps: number): LiveEvent => ({ kind: 'interval', start_us: 0, width_us: 1e6, phase: 'measure', tps, failed: 0, p50_us: 35, p95_us: 60, p99_us: 90, max_us: 99, waits: null, side });
  const events: LiveEvent[] = [
    { kind: 'run', format: 1, campaign: 'pairs', pgdyno_version: '0.1.0', begun: at, planned: 6, cells },
    stored(1, '18 default', 1000), stored(2, '18 large', 900), stored(3, '18 default', 1000), stored(4, '18 small', 1050),
    { ...begins('a', 'default'), other: begins('b', 'large') }, load('a', 5000), load('b', 4000),
  ];
  const body = events.map((event) => `data: ${JSON.stringify({ run: 'R', event })}\n\n`).join('');
  await page.route('**/api/live', (route) => route.fulfill({ contentType: 'text/event-stream', body: `retry: 100000\n\n${body}` }));
  await page.goto(`${address}#page=live`);
  await page.getByRole('heading', { name: 'Session 3' }).waitFor();
  const sides = await page.getByRole('table', { name: 'Sides of the session' }).locator('tbody tr').allInnerTexts();
  expect(sides.map((row) => row.split(/\s*\t\s*/).slice(0, 2))).toEqual([['A settings default', '5,000'], ['B settings large', '4,000']]);
  await page.getByTitle('The figures of Change by session').click();
  await page.getByRole('cell', { name: '−10.0%' }).waitFor();
  await page.getByRole('cell', { name: '+5.0%' }).waitFor();
});
