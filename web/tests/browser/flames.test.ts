/** The flame graph of a report, in a real browser. Screenshots are left in test-results/. */

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { launch, type Browser } from '../launch';

const address = pathToFileURL(resolve(process.env.REPORT_HTML ?? 'test-results/report.html')).href;
let browser: Browser;

beforeAll(async () => {
  browser = await launch({ offline: true });
});

afterAll(() => browser.close());

async function open(fragment = '', width = 1280): Promise<Page> {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.setViewportSize({ width, height: 900 });
  await page.goto(`${address}#page=profiles&${fragment.replace('#', '')}`);
  await page.waitForSelector('.flame .bar');
  return page;
}

/** The first bar of a function, which has its whole name. */
function bar(page: Page, name: string) {
  return page.locator(`.flame [data-function="${name}"]`).first();
}

async function widthOf(page: Page, name: string): Promise<number> {
  return (await bar(page, name).boundingBox())?.width ?? 0;
}

test('bars are as wide as their shares, which the table shows as well', async () => {
  const page = await open();
  const [whole, scan] = [await widthOf(page, 'load'), await widthOf(page, 'ExecScan')];
  await bar(page, 'ExecScan').hover();
  const shownShare = /([\d.]+)% of load/.exec(await page.locator('.flames .pointed').innerText())?.[1];
  expect(Math.abs((100 * scan) / whole - Number(shownShare))).toBeLessThan(0.2);
  await page.getByPlaceholder('a function').fill('ExecScan');
  const row = page.locator('.flames .functions tbody tr').first();
  expect(await row.innerText()).toContain(`${shownShare ?? ''}%`);
  expect(await page.locator('.flames label', { hasText: 'find' }).innerText()).toContain(`${shownShare ?? ''}% of load`);
  expect(await page.locator('.flame .bar.found').count()).toBe(1);
  expect(page.url()).toContain('flame-find=ExecScan');
});

test('a function is shown alone by a click, and its address shows it again', async () => {
  const page = await open();
  const whole = await widthOf(page, 'load');
  await bar(page, 'ExecScan').click();
  expect(await widthOf(page, 'ExecScan')).toBeCloseTo(whole, 0);
  expect(await bar(page, 'pq_getbyte').count()).toBe(0);
  const again = await open(new URL(page.url()).hash);
  expect(await widthOf(again, 'ExecScan')).toBeCloseTo(whole, 0);
  await page.getByRole('button', { name: 'all functions' }).click();
  expect(await bar(page, 'pq_getbyte').count()).toBe(1);
});

test('the keyboard goes from function to function', async () => {
  const page = await open();
  await page.locator('.flame').focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
  const first = await page.locator('.flames .pointed b').innerText();
  await page.keyboard.press('ArrowRight');
  const second = await page.locator('.flames .pointed b').innerText();
  expect(second).not.toBe(first);
  await page.keyboard.press('Enter');
  expect(await widthOf(page, second)).toBeCloseTo(await widthOf(page, 'load'), 0);
  await page.keyboard.press('Escape');
  expect(await bar(page, first).count()).toBe(1);
});

test('another role or profile can be chosen', async () => {
  const page = await open();
  await page.getByRole('group', { name: 'role' }).getByText('driver').click();
  expect(await bar(page, 'event_loop::run').count()).toBe(1);
  expect(await bar(page, 'ExecScan').count()).toBe(0);
  await page.getByRole('group', { name: 'role' }).getByText('load').click();
  await page.getByLabel('profile of').selectOption({ label: 'select-only, scale 10, 8 clients, PostgreSQL 18.1' });
  await page.getByLabel('against').selectOption({ label: 'select-only, scale 10, 8 clients, PostgreSQL 13.23' });
  expect(await page.locator('.flame .bar.less[data-function="AcquireExecutorLocks"]').count()).toBe(1);
  expect(await page.locator('.flame .bar.more[data-function="BufTableLookup"]').count()).toBe(1);
  const rows = page.locator('.flames .functions tbody tr');
  expect(await rows.nth(0).innerText()).toMatch(/LockAcquireExtended.*−7\d/s);
});

test('off-CPU profiles are shown as time', async () => {
  const page = await open();
  await page.getByLabel('profile of').selectOption({ label: 'select-only, scale 10, 8 clients, PostgreSQL 18.1: off CPU' });
  await page.waitForSelector('.flame [data-function="ProcSleep"]');
  expect(await page.locator('.flames h2').innerText()).toMatch(/^Where threads wait.*22\.8 s off the CPU/s);
  expect(await page.getByLabel('against').count()).toBe(0);
  await bar(page, 'ProcSleep').hover();
  expect(await page.locator('.flames .pointed').innerText()).toContain('22.8% of load, itself 0.0% (5.19 s');
  expect(await page.locator('.flames .functions tbody tr').first().innerText()).toContain('PostgresMain');
});

describe.each([1280, 390])('at %i pixels', (width) => {
  test.each(['light', 'dark'])('in %s nothing is wider than the page', async (theme) => {
    const page = await open(`#theme=${theme}&flame-profile=1&flame-against=0`, width);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    await page.locator('.flames').screenshot({ path: `test-results/flames-${width}-${theme}.png` });
  });
});

test('is saved as a picture and as a table', async () => {
  const page = await open();
  const saved = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator('.flames .tools').getByRole('button', { name }).click()]);
    return readFileSync(await download.path(), 'utf8');
  };
  const svg = await saved('SVG');
  const bars = await page.locator('.flame .bar').count();
  expect(svg.match(/<rect /g)?.length).toBe(bars + 1);
  expect(svg).toContain('>ExecScan<');
  expect(svg).not.toMatch(/oklab|color\(/);
  const rows = (await saved('CSV')).trim().split('\r\n');
  expect(rows[0]).toMatch(/^function,/);
  expect(rows.some((row) => row.startsWith('ExecScan,'))).toBe(true);
});
