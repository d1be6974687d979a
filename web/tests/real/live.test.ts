/** The live page, over a store in which a campaign runs. Screenshots are left in test-results/pictures. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { json, launch, PGDYNO, serve, stop, type Browser } from './store';
import type { RunHead } from '../../src/data/live';
import type { View } from '../../src/data/generated/view';

const CAMPAIGN = `
name = "live"
[factors]
server = ["18"]
workload = ["tpcb-like"]
clients = [2]
[run]
repeats = 3
warmup = "1s"
duration = "8s"
`;

let browser: Browser;
let directory: string;
const children: ChildProcess[] = [];
const store = () => join(directory, 'store');

beforeAll(async () => {
  browser = await launch();
  directory = mkdtempSync(join(tmpdir(), 'pgdyno-live-'));
  writeFileSync(join(directory, 'live.toml'), CAMPAIGN);
  mkdirSync(join(store(), 'trials'), { recursive: true });
});

afterAll(async () => {
  for (const child of children) await stop(child);
  await browser.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The current figure with a name. */
async function now(page: Page, name: string): Promise<number> {
  const text = await page.locator('.now div', { hasText: name }).locator('dd').innerText();
  return Number(text.replaceAll(',', '').split(' ')[0]);
}

async function screenshots(page: Page) {
  for (const [width, theme] of [[1280, 'light'], [1280, 'dark'], [390, 'light'], [390, 'dark']] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.evaluate((theme) => (location.hash = `#page=live&theme=${theme}`), theme);
    await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, theme);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(width);
    await page.screenshot({ path: `test-results/pictures/live-${width}-${theme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

test('a running campaign is followed across a restart of the server, and its trials appear without a reload', async () => {
  const first = await serve(store(), '127.0.0.1:0');
  children.push(first.child);
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.goto(`${first.address}#page=live`);
  await page.getByText('No campaign is running').waitFor();

  const run = spawn(PGDYNO, ['run', 'live.toml', '--store', store()], {
    cwd: directory,
    stdio: 'ignore',
    // Does not wait for other tests.
    env: { ...process.env, PGDYNO_QUEUE: directory },
  });
  children.push(run);
  const ended = once(run, 'exit');
  await page.locator('section.running h2', { hasText: 'live' }).waitFor();
  await page.locator('.now').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.running figure svg path[stroke]').length > 0);
  await page.getByText('Measuring').waitFor();
  expect(await now(page, 'transactions per second')).toBeGreaterThan(1);
  expect(await now(page, 'p99')).toBeGreaterThan(0);
  await page.locator('.waits .bar').first().waitFor();
  await screenshots(page);

  // The first trial ends: it is counted here, and the overview has it without a reload.
  await page.getByText('1 of 3 trials').waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.locator('[data-trial]').first().waitFor();
  expect(await page.locator('[data-trial]').count()).toBe(1);
  await page.getByRole('link', { name: 'live is running' }).click();

  // The server stops and is restarted.
  const { port } = new URL(first.address);
  await stop(first.child);
  await page.getByText('pgdyno serve does not respond').waitFor();
  children.push((await serve(store(), `127.0.0.1:${port}`)).child);
  await page.getByText('new results appear without a reload').waitFor();
  await page.getByText('2 of 3 trials').waitFor();
  await page.getByText('Measuring').waitFor();
  expect(await now(page, 'transactions per second')).toBeGreaterThan(1);

  expect((await ended)[0]).toBe(0);
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.waitForFunction(() => document.querySelectorAll('[data-trial]').length === 3);
  const view = json('report', '--store', store()) as View;
  const shown = await page.locator('[data-trial]').evaluateAll((marks) => marks.map((mark) => mark.getAttribute('data-trial')));
  const stored = view.panels.flatMap(({ rows }) => rows.flatMap(({ points }) => points.flatMap((point) => point?.runs ?? [])));
  expect(shown.toSorted()).toEqual(stored.map(({ id }) => id).toSorted());
  const heads = (await (await fetch(`http://127.0.0.1:${port}/api/runs`)).json()) as RunHead[];
  expect(heads.map(({ valid, suspect, invalid, running }) => [valid + suspect + invalid, running])).toEqual([[3, false]]);
  // The browser itself reports lost connections.
  expect(browser.complaints.filter((text) => !/ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|CONNECTION_RESET)/.test(text))).toEqual([]);
}, 240_000);
