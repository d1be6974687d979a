/** The page of a trial, in a real browser: its figures are those of the file. Screenshots are left in test-results/. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Detail } from '../../src/data/generated/detail';
import { change, count, inUnit, latency, tps } from '../../src/data/format';
import { allTrials } from '../../src/data/trials';
import type { View } from '../../src/data/generated/view';
import { launch, type Browser } from '../launch';

const path = resolve(process.env.REPORT_HTML ?? 'test-results/report.html');
const html = readFileSync(path, 'utf8');
const read = (data: string) => JSON.parse(gunzipSync(Buffer.from(data, 'base64')).toString()) as unknown;
const inFile = [...html.matchAll(/<script id="trial-[^"]*"[^>]*>([^<]*)<\/script>/g)].map(([, data]) => read(data ?? '') as Detail);
const view = read(/<script id="view"[^>]*>([^<]*)<\/script>/.exec(html)?.[1] ?? '') as View;
const placed = (id: string) => allTrials(view).find(({ trial }) => trial.id === id);
/** The later column's trial, and the baseline's. */
const [first, second] = inFile.toSorted((a, b) => (placed(b.id)?.at ?? 0) - (placed(a.id)?.at ?? 0)) as [Detail, Detail];
const both = `trial=${first.id}&against=${second.id}`;

let browser: Browser;

beforeAll(async () => {
  browser = await launch({ offline: true });
});

afterAll(() => browser.close());

afterEach(() => {
  expect(browser.complaints.splice(0)).toEqual([]);
});

async function open(fragment = '', width = 1280, height = 900): Promise<Page> {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.setViewportSize({ width, height });
  await page.goto(`${pathToFileURL(path).href}#page=trial&${fragment.replace('#', '').replace('page=trial&', '')}`);
  return page;
}

/** Opens a page and waits for all lanes. */
async function opened(fragment = '', width = 1280): Promise<Page> {
  const page = await open(fragment, width);
  await page.waitForSelector('[data-lane="tps"] canvas');
  await page.waitForFunction(() => [...document.querySelectorAll('canvas')].every((canvas) => canvas.width > 300 || canvas.clientWidth > 200));
  return page;
}

/** The distinct colours of a canvas. */
function colours(canvas: Locator): Promise<string[]> {
  return canvas.evaluate((canvas: HTMLCanvasElement) => {
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext('2d', { willReadFrequently: true });
    context?.drawImage(canvas, 0, 0);
    const { data } = context?.getImageData(0, 0, copy.width, copy.height) ?? { data: [] };
    const found = new Set<string>();
    for (let at = 0; at < data.length; at += 4) found.add(`${data[at] ?? ''} ${data[at + 1] ?? ''} ${data[at + 2] ?? ''} ${data[at + 3] ?? ''}`);
    return [...found];
  });
}

/** The readout's values by row. */
async function readout(page: Page): Promise<Record<string, string[]>> {
  const rows = await page.locator('.readout tbody tr').evaluateAll((rows) =>
    rows.map((row) => [row.querySelector('th')?.textContent.trim() ?? '', [...row.querySelectorAll('td')].map((cell) => cell.textContent)] as const));
  return Object.fromEntries(rows.filter(([, values]) => values.length > 0));
}

const hashOf = (page: Page) => new URLSearchParams(new URL(page.url()).hash.slice(1));
const zoomOf = (page: Page) => (hashOf(page).get('zoom') ?? '').split('-').map(Number);
const zoomed = (page: Page) => page.waitForFunction(() => location.hash.includes('zoom='));

test('without a choice a trial is shown against its baseline', async () => {
  const page = await opened();
  const text = await page.locator('.trial-head').innerText();
  for (const { id } of [first, second]) expect(text).toContain(id);
  expect(await page.locator('.trial-head h2').first().innerText()).toContain(placed(first.id)?.column.label);
});

test('its figures are those of the view, with their differences', async () => {
  const page = await opened(both);
  const table = await page.locator('.trial-head table').innerText();
  const [one, other] = [placed(first.id)?.trial, placed(second.id)?.trial];
  for (const trial of [one, other]) {
    expect(table).toContain(tps(trial?.tps ?? null));
    expect(table).toContain(latency(trial?.latency?.p99_us ?? null));
  }
  expect(table).toContain(change((one?.tps ?? 0) / (other?.tps ?? 1) - 1));
  expect(await page.locator('.command code').first().innerText()).toBe(first.rerun);
});

test('percentiles, parts of a transaction and statements are the file’s', async () => {
  const page = await opened(`trial=${first.id}`);
  const p99 = first.intended?.us[first.intended.q.findIndex((q) => q >= 0.99)];
  expect(await page.locator('.curve tbody tr', { hasText: 'p99' }).first().innerText()).toContain(latency(p99 ?? null));
  const budget = await page.locator('.budget').innerText();
  for (const { us, share } of first.explained?.parts.filter(({ us, share }) => us > 0 && share > 0.01) ?? []) {
    expect(budget).toContain(latency(us));
    expect(budget).toContain(`${(100 * share).toFixed(1)}%`);
  }
  expect(budget).toContain(first.explained?.verdict);
  for (const cause of first.explained?.causes ?? []) expect(budget).toContain(`${cause.confidence} confidence`);
  const statements = await page.locator('.statements').innerText();
  for (const { query, total_us, calls } of first.statements) {
    expect(statements).toContain(query);
    expect(statements).toContain(latency(total_us / calls));
  }
});

test('load hosts have their parts of the load and their clocks', async () => {
  const page = await opened(`trial=${first.id}`);
  const rows = await page.getByRole('table', { name: 'Load hosts' }).locator('tbody tr').allInnerTexts();
  expect(rows.map((row) => row.split(/\s*\t\s*/))).toEqual([
    ['load-1', '4', count(first.load_hosts[0]?.transactions ?? null), '-0.002', '0.086', '0.231', '11%', '1.8'],
    ['load-2', '4', count(first.load_hosts[1]?.transactions ?? null), '+500.014', '0.086', '–', '–', '1.8'],
  ]);
  await page.getByText('load-2 was lost: it reported nothing for 12 s').waitFor();
});

describe('by keyboard', () => {
  test('the cursor goes from interval to interval and shows the values of every lane', async () => {
    const page = await opened(both);
    await page.locator('.lanes').focus();
    await page.keyboard.press('Home');
    for (let step = 0; step < 37; step += 1) await page.keyboard.press('ArrowRight');
    const at = 36;
    expect(await page.locator('.readout .moment').innerText()).toContain(`${at}.5`);
    const values = await readout(page);
    const figure = (us: (detail: Detail) => number | null | undefined, unit: string) => [first, second].map((detail) => inUnit(us(detail) ?? null, unit));
    expect(values.Throughput).toEqual(figure(({ load }) => load.tps[at], 'TPS'));
    expect(values.p50).toEqual(figure(({ load }) => load.p50_us[at], 'µs'));
    expect(values.p99).toEqual(figure(({ load }) => load.p99_us[at], 'µs'));
    expect(values.max).toEqual(figure(({ load }) => load.max_us[at], 'µs'));
    const sync = (detail: Detail) => detail.waits?.series.find(({ event }) => event === 'WalSync')?.sessions[detail.waits.start_us.indexOf(at * 1e6)];
    expect(values['IO WalSync']).toEqual(figure(sync, ''));
    await page.keyboard.press('Escape');
    expect((await readout(page)).Throughput).toEqual(['–', '–']);
  });

  test('plus, minus, 0 and Shift with the arrows zoom and move', async () => {
    const page = await opened(both);
    await page.locator('.lanes').focus();
    await page.keyboard.press('+');
    await page.keyboard.press('+');
    await zoomed(page);
    const [from = NaN, to = NaN] = zoomOf(page);
    const whole = (first.load.start_us.at(-1) ?? 0) / 1e6 + (first.load.width_us.at(-1) ?? 0) / 1e6;
    expect(to - from).toBeCloseTo(whole / 1.5 ** 2, 1);
    await page.keyboard.press('Shift+ArrowRight');
    await page.waitForFunction((before) => !location.hash.includes(before), `zoom=${from}-${to}`);
    const [later = NaN] = zoomOf(page);
    expect(later - from).toBeGreaterThan((to - from) / 6);
    await page.keyboard.press('0');
    await page.waitForFunction(() => !location.hash.includes('zoom='));
  });

  test('the messages of events are shown one by one', async () => {
    const page = await opened(`trial=${first.id}`);
    await page.locator('.events').focus();
    await page.keyboard.press('ArrowRight');
    const within = first.events.filter(({ start_us, end_us }) => (end_us ?? start_us) >= 0);
    expect(await page.locator('.message').innerText()).toContain(within[0]?.message.slice(0, 60));
    await page.keyboard.press('End');
    expect(await page.locator('.message').innerText()).toContain(within.at(-1)?.message.slice(0, 60));
  });

  test('a metric is found, drawn and taken away', async () => {
    const page = await opened(`trial=${first.id}`);
    expect(await page.locator('[data-lane="memory.dirty_bytes"]').count()).toBe(0);
    await page.getByPlaceholder('cpu system').fill('dirty mem');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[data-lane="memory.dirty_bytes"] canvas');
    expect(hashOf(page).getAll('metric')).toContain('memory.dirty_bytes');
    const restored = await opened(new URL(page.url()).hash);
    expect(await restored.locator('[data-lane="memory.dirty_bytes"]').count()).toBe(1);
    expect(await restored.locator('.lane').count()).toBe(await page.locator('.lane').count());
    await page.keyboard.press('Enter');
    expect(await page.locator('[data-lane="memory.dirty_bytes"]').count()).toBe(0);
    await page.getByRole('button', { name: 'default metrics' }).click();
    await page.waitForFunction(() => !location.hash.includes('metric='));
  });

  test('every control, lane and table can be reached', async () => {
    const page = await opened(both);
    const reached = new Set<string>();
    for (let stop = 0; stop < 140; stop += 1) {
      await page.keyboard.press('Tab');
      reached.add(await page.evaluate(() => `${document.activeElement?.className ?? ''} ${document.activeElement?.getAttribute('aria-label') ?? ''} ${document.activeElement?.tagName ?? ''}`));
    }
    const all = [...reached].join('\n');
    for (const part of ['SELECT', 'lanes', 'events', 'Metrics; Enter', 'Percentiles', 'Where the time goes, in figures', 'Copy pgdyno']) expect(all).toContain(part);
  });
});

/** Position of the throughput lane on the screen. */
async function lane(page: Page): Promise<{ x: number; y: number; width: number }> {
  const plot = page.locator('[data-lane="tps"] .plot');
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  if (!box) throw new Error('there is no lane of throughput');
  return box;
}

describe('zoom', () => {
  test('is what is dragged over, is in the address, and the address restores it', async () => {
    const page = await opened(both);
    const box = await lane(page);
    await page.mouse.move(box.x + 300, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await zoomed(page);
    const [from = NaN, to = NaN] = zoomOf(page);
    expect((to - from) / 66).toBeGreaterThan((0.8 * 200) / box.width);
    const restored = await opened(new URL(page.url()).hash);
    expect(await restored.locator('.timeline h2').innerText()).toBe(await page.locator('.timeline h2').innerText());
    await page.mouse.dblclick(box.x + 400, box.y + 40);
    await page.waitForFunction(() => !location.hash.includes('zoom='));
  });

  test('goes with the wheel and Ctrl about the pointer, and with Shift the part is moved', async () => {
    const page = await opened(both);
    const box = await lane(page);
    await page.mouse.move(box.x + 400, box.y + 40);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -120);
    await page.keyboard.up('Control');
    await zoomed(page);
    const [from = NaN, to = NaN] = zoomOf(page);
    expect(to - from).toBeLessThan(50);
    await page.keyboard.down('Shift');
    await page.mouse.down();
    await page.mouse.move(box.x + 300, box.y + 40, { steps: 3 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await page.waitForFunction((before) => !location.hash.includes(before), `zoom=${from}-${to}`);
    const [later = NaN, last = NaN] = zoomOf(page);
    expect(last - later).toBeCloseTo(to - from, 2);
    expect(later).toBeGreaterThan(from);
  });
});

test('going back undoes a choice', async () => {
  const page = await opened(both);
  await page.getByRole('button', { name: 'swap' }).click();
  await page.waitForFunction((id) => location.hash.includes(`trial=${id}`), second.id);
  expect(await page.locator('.trial-head h2').first().innerText()).toContain(placed(second.id)?.column.label);
  await page.getByLabel('against').selectOption('');
  await page.waitForFunction(() => !location.hash.includes('against='));
  expect(await page.locator('.trial-head h2').count()).toBe(1);
  await page.goBack();
  await page.goBack();
  await page.waitForFunction((id) => location.hash.includes(`trial=${id}`), first.id);
  expect(await page.locator('.trial-head h2').first().innerText()).toContain(placed(first.id)?.column.label);
});

test('the lanes are drawn, and drawn again in the colours of another theme', async () => {
  const page = await opened(both);
  for (const canvas of await page.locator('canvas').all()) expect((await colours(canvas)).length).toBeGreaterThan(3);
  const has = (colour: string) => colours(page.locator('[data-lane="tps"] canvas')).then((found) => found.includes(colour));
  const [light, dark] = ['200 80 10 255', '240 136 62 255'];
  expect([await has(light), await has(dark)]).toEqual([true, false]);
  await page.getByRole('group', { name: 'theme' }).getByText('dark').click();
  await expect.poll(() => has(dark)).toBe(true);
  await page.emulateMedia({ media: 'print' });
  await expect.poll(() => has(light)).toBe(true);
});

test('a lane’s table, CSV and pictures have what is drawn', async () => {
  const page = await opened(`trial=${first.id}&zoom=10-12`);
  const lane = page.locator('[data-lane="tps"]');
  await lane.getByRole('button', { name: 'table' }).click();
  const cells = await lane.locator('tbody tr > *').allInnerTexts();
  expect(cells).toEqual(first.load.tps.slice(10, 12).flatMap((value, n) => [String(10.5 + n), inUnit(value, 'TPS')]));
  const saved = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent('download'), lane.getByRole('button', { name, exact: true }).click()]);
    return readFileSync(await download.path());
  };
  expect((await saved('CSV')).toString()).toBe(`time (s),TPS\r\n10.5,${first.load.tps[10] ?? ''}\r\n11.5,${first.load.tps[11] ?? ''}\r\n`);
  expect((await saved('SVG')).toString()).toMatch(/<image href="data:image\/png;base64,[^"]{2000}/);
  expect((await saved('PNG')).subarray(1, 4).toString()).toBe('PNG');
});

test('missing data are reported, with the remedy', async () => {
  const unknown = await open('trial=01NOTATRIAL');
  expect(await unknown.getByRole('alert').innerText()).toContain('01NOTATRIAL');
  await unknown.getByRole('link', { name: 'Show another trial' }).click();
  await unknown.waitForSelector('[data-lane="tps"] canvas');
  const elsewhere = allTrials(view).find(({ trial }) => !inFile.some(({ id }) => id === trial.id))?.trial.id ?? '';
  const page = await open(`trial=${elsewhere}`);
  await page.waitForSelector('.trouble');
  expect(await page.locator('.trouble').innerText()).toContain(`pgdyno show ${elsewhere}`);
  expect(await page.locator('.trial-head').innerText()).toContain(elsewhere);
});

describe.each([1280, 390])('at %i pixels', (width) => {
  test.each(['light', 'dark'])('in %s nothing is wider than the page', async (theme) => {
    const page = await opened(`${both}&theme=${theme}`, width);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    await page.screenshot({ path: `test-results/trial-${width}-${theme}.png`, fullPage: true });
  });
});

test('axe-core finds no accessibility problems', async () => {
  const page = await opened(both);
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8'));
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: (where: Node) => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> } };
    const { violations } = await axe.run(document);
    return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`);
  });
  expect(found).toEqual([]);
});
