/** The history and the differences between columns, compared with the figures that they are drawn from. */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { cellTitle, figure } from '../../src/history/chart';
import { change } from '../../src/data/format';
import { columnKey } from '../../src/data/url';
import { histories } from '../../test-results/histories';
import { kernels } from '../../test-results/kernels';
import { view } from '../../test-results/view';
import { launch, type Browser } from '../launch';

const [history] = histories;
if (!history) throw new Error('the fixture has no history');

let browser: Browser;
beforeAll(async () => {
  browser = await launch({ offline: true });
});
afterAll(() => browser.close());
afterEach(() => {
  expect(browser.complaints).toEqual([]);
  browser.complaints.length = 0;
});

async function open(file: string, fragment: string): Promise<Page> {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.goto(`${pathToFileURL(resolve(`test-results/${file}.html`)).href}#${fragment}`);
  await page.waitForSelector('main:not([aria-busy]) section h2');
  return page;
}

test('every cell is a chart of all its runs, with its changes', async () => {
  const page = await open('kernels', 'page=history');
  await page.locator('.over-steps svg').last().waitFor();
  expect(await page.locator('.history').innerText()).toContain(history.sentence);
  expect(await page.locator('.history tbody tr').count()).toBe(history.shifts.length);
  expect(await page.locator('.over-steps').count()).toBe(history.cells.length);
  for (const cell of history.cells) {
    const chart = page.getByRole('figure', { name: cellTitle(cell, history.cells) }).locator('.over-steps');
    const dots = chart.locator('[aria-label="dot"] circle');
    expect(await dots.count()).toBe(cell.points.reduce((sum, { values }) => sum + values.length, 0));
    const text = await chart.locator('svg').textContent();
    for (const { ratio } of cell.changes) expect(text).toContain(change(ratio - 1));
  }
});

test('a cell is shown alone, by keyboard too; its address shows it again and back shows all', async () => {
  const page = await open('kernels', 'page=history');
  const title = await page.locator('.multiples figure').first().getAttribute('aria-label');
  await page.getByRole('button', { name: /^Larger/ }).first().focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('history-cell'));
  expect(await page.locator('.over-steps').count()).toBe(1);
  const again = await open('kernels', new URL(page.url()).hash.slice(1));
  expect(title).toContain(await again.locator('figure .what').innerText());
  await again.getByRole('button', { name: 'table' }).click();
  const cell = history.cells.find((cell) => title?.startsWith(cellTitle(cell, history.cells)));
  const rows = again.locator('figure tbody tr');
  expect(await rows.count()).toBe(history.steps.length);
  expect(await rows.first().innerText()).toContain(figure(cell?.points[0]?.median ?? null));
  await page.goBack();
  await page.waitForFunction(() => document.querySelectorAll('.over-steps').length > 1);
});

test('without a history its requirements are shown', async () => {
  const page = await open('report', 'page=history');
  await page.waitForFunction(() => document.querySelector('main')?.textContent.includes('needs at least'));
  expect(await page.locator('main').innerText()).toContain('pgdyno history');
});

test('differences between two columns are shown, with a warning for undeclared ones', async () => {
  const [of, against] = [view.columns[1], view.columns[0]];
  if (!of || !against) throw new Error('the fixture has too few columns');
  const page = await open('report', `page=environment&difference-of=${columnKey(of)}&difference-against=${columnKey(against)}`);
  const section = page.locator('.difference');
  const text = await section.innerText();
  expect(text).toContain(of.versions[0]);
  const differing = view.environment.settings.filter(({ values }) => JSON.stringify(values[0]?.values) !== JSON.stringify(values[1]?.values));
  expect(differing.length).toBeGreaterThan(0);
  for (const { name } of differing) expect(text).toContain(name);
  expect(await section.locator('.warning').innerText()).toContain('Careful');
});

test('declared differences of kernels cause no warning', async () => {
  const page = await open('kernels', 'page=environment');
  const section = page.locator('.difference');
  expect(await section.innerText()).toContain('Linux');
  expect(await section.locator('.warning').count()).toBe(0);
  const last = kernels.columns.at(-1);
  // The path of the kernel's file is no difference; modules of one side are listed.
  expect(await section.innerText()).not.toContain('BOOT_IMAGE');
  await section.locator('select').first().selectOption({ index: kernels.columns.length - 1 });
  await page.waitForFunction(() => location.hash.includes('difference-of'));
  expect(await section.locator('h2').innerText()).toContain(last?.label);
  expect(await section.locator('.warning').count()).toBe(0);
  const modules = section.locator('tr', { has: page.getByRole('rowheader', { name: 'modules', exact: true }) });
  expect((await modules.locator('.value').allInnerTexts()).sort()).toEqual(['ahci', 'ata_piix']);
  const options = section.locator('.kernel-options');
  expect(await options.locator('summary').innerText()).toMatch(/2 options differ: HZ \d+ → \d+, …/);
  expect(await options.locator('tbody').isVisible()).toBe(false);
  await options.locator('summary').click();
  expect(await options.locator('tbody tr').count()).toBe(2);
  expect(await page.locator('.environment').innerText()).toContain('CPU scheduler');
});
