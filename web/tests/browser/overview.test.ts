/** Verdicts, scales and the banner of the overview, compared with the figures that they are drawn from. */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ordered, typical, verdictsOf } from '../../src/overview/verdicts';
import { change, count, latency, tps } from '../../src/data/format';
import { columnKey } from '../../src/data/url';
import { emulated } from '../../test-results/emulated';
import { kernels } from '../../test-results/kernels';
import { mix } from '../../test-results/mix';
import { phases } from '../../test-results/phases';
import { scans } from '../../test-results/scans';
import { view } from '../../test-results/view';
import { launch, type Browser } from '../launch';

let browser: Browser;
beforeAll(async () => {
  browser = await launch({ offline: true });
});
afterAll(() => browser.close());
afterEach(() => {
  expect(browser.complaints).toEqual([]);
  browser.complaints.length = 0;
});

async function open(file: string, fragment = '', width = 1280): Promise<Page> {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.setViewportSize({ width, height: 900 });
  await page.goto(`${pathToFileURL(resolve(`test-results/${file}.html`)).href}#${fragment}`);
  await page.waitForSelector('main section');
  return page;
}

const rowsOf = (page: Page) => page.locator('.verdicts tbody tr');

test('every verdict is a row with its figures, regressions first', async () => {
  const page = await open('report');
  const all = ordered(verdictsOf(view), undefined);
  expect(all.length).toBeGreaterThan(5);
  expect(await rowsOf(page).count()).toBe(all.length);
  for (const [nth, row] of all.entries()) {
    const text = await rowsOf(page).nth(nth).innerText();
    for (const part of [row.cell, change(row.verdict.change), row.verdict.verdict.toLowerCase(), tps(row.before.mean), tps(row.after.mean)]) {
      expect(text).toContain(part);
    }
  }
});

test('a row links to the two trials nearest to the means, their flame graphs and their differences', async () => {
  const page = await open('report');
  const row = ordered(verdictsOf(view), undefined).findIndex(({ profiles }) => profiles !== null);
  const judged = ordered(verdictsOf(view), undefined)[row];
  if (!judged?.profiles) throw new Error('no verdict has profiles on both sides');
  const links = rowsOf(page).nth(row).locator('a');
  const fragments = await links.evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).hash));
  const [trials, flames, environment] = fragments.map((hash) => Object.fromEntries(new URLSearchParams(hash.slice(1))));
  expect(trials).toEqual({ page: 'trial', trial: typical(judged.after)?.id, against: typical(judged.before)?.id });
  expect(flames).toEqual({ page: 'profiles', 'flame-profile': String(judged.profiles.of), 'flame-against': String(judged.profiles.against) });
  expect(environment?.page).toBe('environment');
  await links.first().click();
  await page.waitForFunction(() => location.hash.includes('page=trial'));
  await page.goBack();
  expect(await rowsOf(page).count()).toBeGreaterThan(0);
});

test('verdicts are ordered and chosen by keyboard, and the address keeps it', async () => {
  const page = await open('report');
  const first = () => rowsOf(page).first().innerText();
  await page.getByRole('button', { name: 'change' }).focus();
  await page.keyboard.press('Enter');
  expect(await first()).toContain(ordered(verdictsOf(view), 'change')[0]?.cell);
  await page.keyboard.press('Enter');
  expect(await first()).toContain(ordered(verdictsOf(view), '-change')[0]?.cell);
  expect(await page.locator('th[aria-sort="descending"]').innerText()).toContain('change');
  expect(page.url()).toContain('verdict-sort=-change');
  const kind = page.getByRole('group', { name: 'which verdicts' }).getByRole('button').last();
  const [name = '', n] = (await kind.innerText()).split(' ');
  await kind.focus();
  await page.keyboard.press('Space');
  expect(await rowsOf(page).count()).toBe(Number(n));
  const restored = await open('report', new URL(page.url()).hash.slice(1));
  expect(await rowsOf(restored).allInnerTexts()).toEqual(await rowsOf(page).allInnerTexts());
  expect(await rowsOf(restored).first().innerText()).toContain(name);
  await restored.getByPlaceholder('a cell').fill('no such cell');
  expect(await rowsOf(restored).innerText()).toContain('No cell matches');
});

test('each phase has a line with its figures, and a rate that was not held is named', async () => {
  const page = await open('phases');
  const rows = page.getByRole('table', { name: 'phases' }).locator('tbody tr');
  const trials = phases.panels.flatMap(({ rows }) => rows.flatMap(({ points }) => points.flatMap((point) => point?.runs ?? [])));
  expect(await rows.count()).toBe(trials.reduce((sum, { phases }) => sum + phases.length, 0));
  expect(await rows.nth(0).innerText()).toMatch(/^load\s.*repeat 1\s+1\s+10\.0 s\s+100\s+900\s+5,000\s/s);
  expect(await rows.nth(1).innerText()).toMatch(/^read\s.*judged\s*$/s);
  expect(await rows.nth(2).innerText()).toMatch(/^overload\s.*2\.51 s\s+inserts 12\.3 of 20\.0, 77 never begun\s+SLA missed\s*$/s);
});

test('a phase that changed has its verdict before those on the whole and the other phases', async () => {
  const page = await open('phases');
  const rows = await rowsOf(page).allInnerTexts();
  expect(rows.length).toBe(3);
  for (const part of ['phase load', 'regression', '-20.0%', tps(99.98), 'TPS']) expect(rows[0]?.replaceAll('\u2212', '-')).toContain(part);
  for (const row of rows.slice(1)) expect(row).toContain('equivalent');
  expect(rows[2]).toContain('phase overload');
});

test('a figure of the workload\'s own has a verdict, a line in the table and one in the trial', async () => {
  const page = await open('figures');
  const rows = await rowsOf(page).allInnerTexts();
  expect(rows.length).toBe(3);
  for (const part of ['figure.recall', 'regression', '-5.0%', tps(0.98), tps(0.931)]) expect(rows[0]?.replaceAll('\u2212', '-')).toContain(part);
  for (const row of rows.slice(1)) expect(row).toContain('equivalent');
  const table = page.getByRole('table', { name: 'means, ranges and changes' });
  const recall = table.locator('tr', { has: page.getByRole('rowheader', { name: 'figure.recall' }) });
  expect((await recall.innerText()).replaceAll('\u2212', '-')).toMatch(/0\.980[^]*0\.931[^]*-5\.0%[^]*regression/);
  await rowsOf(page).first().locator('a').first().click();
  await page.waitForFunction(() => location.hash.includes('page=trial'));
  expect(await page.locator('.trial-head').innerText()).toMatch(/figure\.recall\s+0\.931\s+0\.980/);
});

test('each script of a mix has a verdict next to that of the whole, and the script that changed comes first', async () => {
  const page = await open('mix');
  const rows = await rowsOf(page).allInnerTexts();
  const points = mix.panels.flatMap(({ rows }) => rows.flatMap(({ points }) => points[1] ?? []));
  expect(rows.length).toBe(3 * points.length);
  for (const row of rows.slice(0, points.length)) {
    for (const part of ['write.sql', 'regression', '+40.0%', latency(1000), latency(1400), 'mean latency']) expect(row).toContain(part);
  }
  for (const row of rows.slice(points.length)) expect(row).toContain('equivalent');
  expect(rows.filter((row) => row.includes('read.sql')).length).toBe(points.length);
  const table = page.getByRole('table', { name: 'means, ranges and changes' });
  const script = table.locator('tr', { has: page.getByRole('rowheader', { name: 'write.sql' }) });
  expect(await script.count()).toBe(points.length);
  for (const part of [latency(1400), `TPS ${tps(10)}`, '+40.0%', 'regression']) expect(await script.first().innerText()).toContain(part);
  // A row leads to the two trials nearest to the script's means, and these to both figures and the verdict.
  await rowsOf(page).first().locator('a').first().click();
  await page.waitForFunction(() => location.hash.includes('page=trial'));
  const head = await page.locator('.trial-head').innerText();
  expect(head).toMatch(/write\.sql latency mean\s+1\.40 ms\s+1\.00 ms\s+\+40\.0%/);
  expect(head).toMatch(/All runs of both cells: 0\.0%, equivalent/i);
  expect(head).toMatch(/write\.sql: \+40\.0%, regression/i);
});

test('the banner counts trials that are not valid and links to their list', async () => {
  const page = await open('report');
  const trials = view.panels.flatMap(({ rows }) => rows.flatMap(({ points }) => points.flatMap((point) => point?.runs ?? [])));
  const banner = await page.locator('.banner').innerText();
  for (const validity of ['valid', 'suspect', 'invalid']) {
    expect(banner).toContain(`${count(trials.filter((trial) => trial.validity === validity).length)} ${validity}`);
  }
  await page.getByRole('button', { name: 'Which, and why' }).click();
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('validity');
  const calm = await open('kernels');
  expect(await calm.locator('.banner').innerText()).toContain('are valid');
});

test('the heat map has the change of each cell of a column, with its sign and verdict', async () => {
  const column = kernels.columns[5];
  if (!column) throw new Error('the fixture has too few columns');
  const page = await open('kernels', new URLSearchParams({ 'scales-column': columnKey(column) }).toString());
  let squares = 0;
  for (const panel of kernels.panels) {
    for (const { clients, points } of panel.rows) {
      const square = page.locator(`[data-square="${panel.scale ?? ''} ${clients ?? ''}"]`);
      const text = await square.textContent();
      expect(text).toContain(change(points[5]?.verdict?.change ?? null));
      expect(text).toContain(points[5]?.verdict?.verdict.toLowerCase());
      squares += 1;
    }
  }
  expect(squares).toBe(4);
  expect(await page.locator('.heat').innerText()).toContain('135% of RAM');
  await page.locator('.heat select').selectOption({ index: 0 });
  await page.waitForFunction((before) => !location.hash.includes(before), new URLSearchParams({ c: columnKey(column) }).toString().slice(2));
});

test('the scaling sweep has each trial at the chosen number of clients', async () => {
  const page = await open('kernels', 'scales-clients=4');
  const chart = page.getByRole('figure', { name: 'transactions per second over scale' });
  const ids = kernels.panels.flatMap(({ rows }) => rows.filter(({ clients }) => clients === 4).flatMap(({ points }) => points.flatMap((point) => point?.runs ?? [])));
  await chart.locator('[data-trial]').first().waitFor();
  expect(await chart.locator('[data-trial]').count()).toBe(ids.length);
  await page.locator('.legend').getByRole('button', { name: 'none' }).click();
  expect(await page.locator('main').innerText()).toContain('Everything is hidden');
});

test('a trial chosen in a sweep links to its page', async () => {
  const page = await open('report');
  await page.locator('.chart').first().focus();
  await page.keyboard.press('End');
  const id = await page.locator('.details code').innerText();
  expect(await page.locator('.details a').getAttribute('href')).toContain(`trial=${id}`);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('page=trial'));
  expect(page.url()).toContain(`trial=${id}`);
});

test.each([390, 3840])('at %i pixels nothing of many columns is wider than the page', async (width) => {
  const page = await open('kernels', '', width);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
});

/** The parts of an element's cells that are beyond the window's right edge, in pixels. */
const beyond = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((cells) => cells.map((cell) => Math.max(0, cell.getBoundingClientRect().right - innerWidth)));

test.each(['report', 'kernels', 'pairs'])('on a phone the change and the verdict of each cell are within the window: %s', async (file) => {
  const page = await open(file, '', 390);
  const verdicts = await beyond(page, '.verdicts tbody td:has(.verdict)');
  const changes = await beyond(page, '.panel td.change:has(.verdict)');
  expect(verdicts.length).toBeGreaterThan(1);
  expect(changes.length).toBeGreaterThan(1);
  expect([...verdicts, ...changes].filter((out) => out > 0)).toEqual([]);
});

test('the figures of four columns are next to each other without scrolling, and their ranges do not hide each other', async () => {
  const keys = kernels.columns.filter((_, at) => at >= 4).map((column) => ['hide', columnKey(column)]);
  const page = await open('kernels', new URLSearchParams(keys).toString());
  await page.locator('.panel .chart svg').first().waitFor();
  const tables = await page.locator('.panel .noted .table').evaluateAll((all) => all.map((table) => table.scrollWidth - table.clientWidth));
  expect(tables).toEqual([0, 0]);
  expect(await page.locator('.panel .chart svg [aria-label="area"]').count()).toBe(0);
  const two = await open('report');
  expect(await two.locator('.panel .chart svg [aria-label="area"]').count()).toBeGreaterThan(0);
});

test('what is not decided is muted, and after all that is', async () => {
  const page = await open('report');
  const decided = await rowsOf(page).evaluateAll((rows) => rows.map((row) => !row.classList.contains('undecided')));
  const n = decided.filter(Boolean).length;
  expect(n).toBeGreaterThan(0);
  expect(n).toBeLessThan(decided.length);
  expect(decided.slice(0, n)).not.toContain(false);
  const colours = await rowsOf(page).locator('.median').evaluateAll((all) => all.map((one) => getComputedStyle(one).color));
  expect(colours[0]).not.toBe(colours.at(-1));
});

test('an open answer says so, why, and which command would decide it', async () => {
  const [answer] = scans.answers;
  expect(answer?.kind).toBe('open');
  const page = await open('scans');
  const text = await page.locator('.answer').innerText();
  expect(text).toContain(`No answer on ${answer?.subject ?? ''}: ${answer?.sentence ?? ''}`);
  expect(answer?.next[0]?.commands.length).toBe(1);
  expect(await page.locator('.answer code').innerText()).toBe(answer?.next[0]?.commands[0]);
});

test('a long page has a list of its sections, each leading to its heading', async () => {
  const page = await open('kernels');
  const list = page.getByRole('navigation', { name: 'Sections' }).getByRole('button');
  await list.first().waitFor();
  expect(await list.count()).toBe(await page.locator('main section h2').count());
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name: 'Validity' }).click();
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('validity');
  expect(await page.locator('#validity').evaluate((heading) => heading.getBoundingClientRect().top)).toBeLessThan(900);
  expect(await (await open('mix')).getByRole('navigation', { name: 'Sections' }).count()).toBe(0);
});

test('an empty history says in the navigation what it needs', async () => {
  const link = (page: Page) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'History' });
  const empty = link(await open('mix'));
  await empty.getByText('needs 4 steps').waitFor();
  expect(await empty.getAttribute('title')).toContain('four steps');
  const page = await open('kernels');
  await page.waitForFunction(() => document.querySelector('.pages a[title]') === null);
  expect(await link(page).innerText()).toBe('History');
});

test('figures of emulated kernels have one note, and instructions in place of throughput', async () => {
  const page = await open('emulated');
  const text = await page.locator('main').innerText();
  expect(emulated.notes.length).toBe(2);
  for (const note of emulated.notes) expect(text.split(note).length - 1).toBe(1);
  const counted = emulated.panels.find(({ conditions }) => conditions.includes('acceleration icount'));
  const points = counted?.rows.flatMap((row) => row.points) ?? [];
  expect(points.length).toBe(4);
  expect(text).toContain('instructions per transaction, lower is better');
  for (const point of points) expect(text).toContain(tps(point?.mean ?? null));
  const rows = await rowsOf(page).allInnerTexts();
  expect(rows.filter((row) => row.includes('no verdict')).length).toBe(2);
  expect(await (await open('report')).locator('main').innerText()).not.toContain('nstructions');

  const id = points[0]?.runs[0]?.id ?? '';
  const trial = await open('emulated', `page=trial&trial=${id}`);
  expect(await trial.locator('.trial-head').innerText()).toContain(`instructions for each transaction\t${count(points[0]?.runs[0]?.instructions_per_transaction ?? null)}`);
});

test('bundles that can\'t be read are named, and so is the reason where their detail would be', async () => {
  const page = await open('damaged');
  const note = page.locator('.left-out');
  expect(await note.innerText()).toContain('2 bundles can\'t be read');
  const lines = await note.locator('li').allInnerTexts();
  expect(lines.map((line) => line.split(';')[0])).toEqual([
    '01KAK3W8XQ5T2M9HC4ZP7V0001, trial.json: it is missing',
    '01KAK3W8XQ5T2M9HC4ZP7V0002, metrics.parquet: it was changed: its SHA-256 differs from that in SHA256SUMS',
  ]);
  // The trial's figures can be read.
  expect(await page.locator('.banner').innerText()).toContain('All 5 trials are valid');
  const trial = await open('damaged', 'page=trial&trial=01KAK3W8XQ5T2M9HC4ZP7V0002');
  expect(await trial.locator('.trouble').innerText()).toContain('can\'t be read: metrics.parquet: it was changed');
});
