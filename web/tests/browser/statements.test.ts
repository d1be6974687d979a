/** The statements of a trace: their verdicts, order and search, and the plans and execution times of one. */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { replay as view } from '../../test-results/replay';
import { launch, type Browser } from '../launch';

const [compared] = view.statements;
const slower = compared?.statements.find(({ verdict }) => verdict === 'REGRESSION');
const failing = compared?.statements.find(({ new_failures }) => new_failures.length > 0);
if (!compared || !slower || !failing) throw new Error('the fixture has no slower and no failing statement');

let browser: Browser;
beforeAll(async () => {
  browser = await launch({ offline: true });
});
afterAll(() => browser.close());
afterEach(() => {
  expect(browser.complaints).toEqual([]);
  browser.complaints.length = 0;
});

async function open(fragment = '', width = 1280): Promise<Page> {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.setViewportSize({ width, height: 900 });
  await page.goto(`${pathToFileURL(resolve('test-results/replay.html')).href}#${fragment}`);
  await page.waitForSelector('section.played');
  return page;
}

const table = (page: Page) => page.getByRole('table', { name: /^Statements of / });
const find = (page: Page) => page.locator('section.played').getByRole('searchbox');
const texts = (page: Page) => table(page).locator('button.statement').allInnerTexts();

test('the statement that got slower is first, and all others are there when asked for', async () => {
  const page = await open();
  const section = await page.locator('section.played').innerText();
  for (const sentence of compared.sentences) expect(section).toContain(sentence);
  const first = await table(page).locator('tbody tr').first().innerText();
  for (const part of [slower.text, 'Index Scan using t0_v on t0 → Seq Scan on t0', 'regression', '+200']) expect(first).toContain(part);
  expect(await texts(page)).toHaveLength(25);
  await page.getByRole('button', { name: `All ${compared.statements.length} statements` }).click();
  expect(await texts(page)).toEqual(compared.statements.map(({ text }) => text));
});

test('rows are ordered by a heading, and found by error, verdict and plan; the address keeps both', async () => {
  const page = await open();
  const before = table(page).getByRole('columnheader', { name: compared.baseline, exact: true });
  await before.getByRole('button').click();
  const by = compared.statements.toSorted((a, b) => (a.mean_us[0] ?? 0) - (b.mean_us[0] ?? 0)).map(({ text }) => text);
  const [least] = await texts(page);
  expect([by[0], by.at(-1)]).toContain(least);
  expect(await before.getAttribute('aria-sort')).not.toBe(null);
  for (const [words, found] of [['57014', failing], ['regression', slower], ['seq scan', slower]] as const) {
    await find(page).fill(words);
    await page.waitForFunction(() => document.querySelectorAll('section.played button.statement').length === 1);
    expect(await texts(page)).toEqual([found.text]);
  }
  const again = await open(new URL(page.url()).hash.slice(1));
  expect(await texts(again)).toEqual([slower.text]);
  await find(again).fill('nothing of it');
  await again.getByRole('button', { name: 'Show all' }).click();
  expect(await texts(again)).toHaveLength(25);
});

test.each([1280, 390])('a statement opens its plans and execution times on both sides at %i pixels', async (width) => {
  const page = await open('', width);
  await table(page).locator('button.statement').first().click();
  const details = page.locator('section.played tr.opened');
  const text = await details.innerText();
  for (const part of [slower.text, compared.baseline, compared.variant, 'Index Scan using t0_v on t0', 'Seq Scan on t0', 'Execution time by percentile']) expect(text).toContain(part);
  await page.waitForSelector('section.played figure[aria-label^="execution time of"] svg');
  const label = await details.getByRole('img', { name: /^Execution time by percentile/ }).getAttribute('aria-label');
  expect(label).toMatch(new RegExp(`${compared.baseline}: .*${compared.variant}: `));
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.waitForFunction((fingerprint) => location.hash.includes(fingerprint), slower.fingerprint);
  await table(page).locator('button.statement').first().click();
  expect(await details.count()).toBe(0);
});

test.each([1280, 390])('a statement shows its waits and its times over the trace on both sides at %i pixels', async (width) => {
  const page = await open(`statement-of=${slower.fingerprint}`, width);
  const details = page.locator('section.played tr.opened');
  const waits = details.getByRole('table', { name: `Waits of ${slower.fingerprint}` });
  const rows = await waits.locator('tbody tr').allInnerTexts();
  expect(rows.map((row) => row.split(/\s+/).filter(Boolean))).toEqual([
    ['CPU', '87%', '22%', '−65'],
    ['IO:DataFileRead', '13%', '74%', '+61'],
    ['LWLock:BufferContent', '0%', '4.0%', '+4'],
  ]);
  const figure = details.getByRole('figure', { name: /^over the trace/ });
  await page.waitForFunction(() => document.querySelectorAll('section.played figure[aria-label^="over the trace"] [role=img] > svg').length === 2);
  // Of the slower side, times grow from half of the mean to one and a half.
  const label = (await figure.getByRole('img').getAttribute('aria-label')) ?? '';
  const [before = [], after = []] = label.split('; ').map((side) => [...side.matchAll(/([\d.]+) µs/g)].map(([, us]) => Number(us)));
  expect([before.length, after.length]).toEqual([4, 4]);
  expect(Math.max(...before) / Math.min(...before)).toBeLessThan(1.05);
  expect((after[3] ?? 0) / (after[0] ?? 1)).toBeGreaterThan(1.8);
  await figure.getByRole('button', { name: 'table' }).click();
  expect(await figure.locator('tbody tr').count()).toBe(100);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
});

test('a statement without samples says so', async () => {
  const page = await open(`statement-find=57014&statement-of=${failing.fingerprint}`);
  const text = await page.locator('section.played tr.opened').innerText();
  expect(text).toContain('0 samples');
});
