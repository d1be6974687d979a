/**
 * The report as a reader opens it: from a file, in a real browser, without a network.
 *
 * REPORT_HTML names the report (default: the one of `npm run fixture`), CHROMIUM the browser. Screenshots are left in
 * test-results/.
 */

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { change, tps } from '../../src/data/format';
import type { Trial, View } from '../../src/data/generated/view';
import { launch, type Browser } from '../launch';

const path = resolve(process.env.REPORT_HTML ?? 'test-results/report.html');
if (!existsSync(path)) throw new Error(`there is no report in ${path}: run \`npm run fixture\` first`);
const address = pathToFileURL(path).href;
const view = viewIn(readFileSync(path, 'utf8'));
const trials: Trial[] = view.panels.flatMap((panel) =>
  panel.rows.flatMap((row) => row.points.flatMap((point) => point?.runs ?? [])),
);
const drawn = trials.filter((trial) => trial.figure !== null);

let browser: Browser;

beforeAll(async () => {
  browser = await launch({ offline: true });
});

afterAll(() => browser.close());

afterEach(() => {
  expect(browser.complaints).toEqual([]);
  browser.complaints.length = browser.requests.length = 0;
});

/** Opens the report in a tab that is closed when the test ends. */
async function open(fragment = '', width = 1280, height = 900): Promise<Page> {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.setViewportSize({ width, height });
  await page.goto(`${address}${fragment}`);
  await page.waitForSelector('main');
  await page.waitForFunction(() => [...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('svg')));
  return page;
}

/** The view inside a report. */
function viewIn(html: string): View {
  const data = /<script id="view"[^>]*>([^<]*)<\/script>/.exec(html)?.[1] ?? '';
  return JSON.parse(gunzipSync(Buffer.from(data, 'base64')).toString()) as View;
}

function drawnIn(page: Page): Promise<(string | null)[]> {
  return page.locator('[data-trial]').evaluateAll((marks) => marks.map((mark) => mark.getAttribute('data-trial')));
}

test('only the file is read', async () => {
  const page = await open();
  expect(browser.requests.filter((url) => !url.startsWith('data:'))).toEqual([address]);
  expect(await page.title()).toContain(view.runs[0]?.campaign);
});

test('the page may not use the network', async () => {
  const page = await open();
  const refused = await page.evaluate(() => fetch('http://127.0.0.1:9/').then(() => 'allowed', () => 'refused'));
  expect(refused).toBe('refused');
  expect(browser.complaints.join()).toContain('Content Security Policy');
  browser.complaints.length = 0;
});

test('every run is a mark in a chart', async () => {
  const page = await open();
  expect((await drawnIn(page)).toSorted()).toEqual(drawn.map((trial) => trial.id).toSorted());
  const invalid = drawn.filter((trial) => trial.validity === 'invalid');
  expect(await page.locator('[data-validity="invalid"]').count()).toBe(invalid.length);
});

test('marks are at their figures, on a scale that begins at zero', async () => {
  const page = await open();
  for (const [at, panel] of view.panels.entries()) {
    const chart = page.locator('.chart').nth(at);
    const middles = await chart.locator('[data-trial]').evaluateAll((marks) =>
      marks.map((mark): [string | null, number] => {
        const { top, bottom } = mark.getBoundingClientRect();
        return [mark.getAttribute('data-trial'), (top + bottom) / 2];
      }),
    );
    const height = new Map(middles);
    const zero = await chart.locator('[aria-label="rule"] line').first().boundingBox();
    const shown = panel.rows.flatMap((row) => row.points.flatMap((point) => point?.runs ?? []));
    const figures = shown.flatMap(({ id, figure }) => (figure ? [{ figure, above: (zero?.y ?? 0) - (height.get(id) ?? 0) }] : []));
    const most = figures.toSorted((a, b) => b.figure - a.figure)[0];
    for (const { figure, above } of figures) {
      expect(Math.abs(above - (most?.above ?? 0) * (figure / (most?.figure ?? 1)))).toBeLessThan(3);
    }
  }
});

test('behind every chart is a table with its figures', async () => {
  const page = await open();
  for (const [at, panel] of view.panels.entries()) {
    const rows = page.locator('section.panel').nth(at).locator('table').first().locator('tbody tr');
    expect(await rows.count()).toBe(panel.rows.length);
    for (const [nth, row] of panel.rows.entries()) {
      const text = await rows.nth(nth).innerText();
      for (const point of row.points) {
        if (point?.mean != null) expect(text).toContain(tps(point.mean));
        if (!point?.verdict) continue;
        expect(text).toContain(change(point.verdict.change));
        expect(text).toContain(point.verdict.verdict.toLowerCase());
      }
    }
  }
});

test('the head answers first: the result, its confidence, its risks and what decides the rest', async () => {
  const page = await open();
  const head = await page.locator('header').innerText();
  expect(view.answers.length).toBeGreaterThan(0);
  for (const { subject, sentence, confidence, why, risks, next } of view.answers) {
    for (const text of [`${subject}: ${sentence}`, confidence ?? '', ...why, ...risks, ...next.flatMap(({ text, commands }) => [text, ...commands])]) expect(head).toContain(text);
  }
  // It is above everything else of the page but its name.
  const [answers, fields] = await Promise.all(['.answers', '.fields'].map((part) => page.locator(part).boundingBox()));
  expect((answers?.y ?? 0) + (answers?.height ?? 0)).toBeLessThanOrEqual(fields?.y ?? 0);
  const [answer] = view.answers;
  expect(answer?.cell).not.toBeNull();
  const link = page.getByRole('link', { name: 'The trials of both sides' });
  expect(await link.getAttribute('href')).toMatch(/page=trial.*trial=.*against=/);
});

test('trials that are not valid are listed by cause, each with its own evidence when it is opened', async () => {
  const page = await open();
  const section = page.locator('section.validity');
  const causes = view.findings.filter(({ validity }) => validity !== 'valid');
  expect(causes.length).toBeGreaterThan(0);
  expect(await section.locator('tbody tr').count()).toBe(causes.length);
  const closed = await section.innerText();
  for (const { gate, evidence } of causes) for (const part of [gate, evidence]) expect(closed).toContain(part);
  for (const summary of await section.locator('summary').all()) await summary.click();
  const opened = await section.innerText();
  for (const trial of trials.filter((trial) => trial.validity !== 'valid')) {
    for (const finding of trial.findings) expect(opened).toContain(finding.evidence);
    expect(opened).toMatch(new RegExp(`no\\.\\s${trial.position}\\b`));
  }
});

test('the environment has facts, settings, builds and the campaign', async () => {
  const page = await open('#page=environment');
  const section = await page.locator('section.environment').innerText();
  for (const fact of view.environment.facts) expect(section).toContain(fact.name);
  for (const setting of view.environment.settings) expect(section).toContain(setting.name);
  for (const column of view.columns) for (const banner of column.banners) expect(section).toContain(banner);
  expect(await page.locator('pre').first().textContent()).toBe(view.runs[0]?.campaign_toml);
});

describe('by keyboard', () => {
  test('every control and every chart can be reached', async () => {
    const page = await open();
    const stops = await page.locator('a, button, [tabindex="0"]').count();
    const reached = new Set<string>();
    for (let stop = 0; stop < stops; stop += 1) {
      await page.keyboard.press('Tab');
      const name = await page.evaluate(() => {
        const element = document.activeElement;
        return `${element?.className ?? ''} ${element?.getAttribute('aria-label') ?? ''} ${element?.textContent ?? ''}`;
      });
      reached.add(name);
    }
    const names = [...reached].join('\n');
    for (const column of view.columns) expect(names).toContain(column.label);
    for (const theme of ['auto', 'light', 'dark']) expect(names).toContain(theme);
    expect([...reached].filter((name) => name.includes('Arrow keys')).length).toBe(view.panels.length);
  });

  test('arrow keys go from trial to trial and show it', async () => {
    const page = await open();
    await page.locator('.chart').first().focus();
    await page.keyboard.press('ArrowRight');
    const first = await page.locator('.details code').innerText();
    expect(page.url()).toContain(`trial=${first}`);
    await page.keyboard.press('ArrowRight');
    expect(await page.locator('.details code').innerText()).not.toBe(first);
    await page.keyboard.press('Escape');
    expect(await page.locator('.details').count()).toBe(0);
    expect(new URL(page.url()).hash).not.toContain('trial');
  });
});

describe('what is selected', () => {
  test('is in the address, and the address restores it', async () => {
    const page = await open();
    await page.locator('.legend button').first().click();
    await page.getByRole('group', { name: 'theme' }).getByText('dark').click();
    const factor = page.locator('.choice:not(.theme)').first();
    if ((await factor.count()) > 0) await factor.locator('button').last().click();
    await page.waitForFunction(() => location.hash.includes('theme=dark'));
    const state = async (page: Page) => ({
      marks: await drawnIn(page),
      pressed: await page.locator('button[aria-pressed="true"]').allInnerTexts(),
      ground: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
    });
    const chosen = await state(page);
    expect(chosen.marks.length).toBeLessThan(drawn.length);
    const restored = await open(new URL(page.url()).hash);
    expect(await state(restored)).toEqual(chosen);
  });

  test('changes when the address does', async () => {
    const page = await open();
    const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.evaluate(() => (location.hash = '#theme=dark'));
    await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor !== before, before);
  });
});

test('a linked trial is shown', async () => {
  const trial = drawn.find((trial) => trial.findings.length > 0) ?? drawn[0];
  const page = await open(`#trial=${trial?.id ?? ''}`);
  const details = await page.locator('.details').innerText();
  expect(details).toContain(tps(trial?.figure ?? null));
  expect(details).toContain(trial?.findings[0]?.evidence ?? '');
});

test('the pointer shows the nearest trial', async () => {
  const page = await open();
  await page.locator('[data-trial]').first().hover({ force: true });
  await page.waitForSelector('.details');
});

describe.each([
  [1280, 900],
  [390, 844],
])('at %i pixels', (width, height) => {
  test.each(['light', 'dark'] as const)('in %s nothing is wider than the page', async (theme) => {
    const page = await open(`#theme=${theme}`, width, height);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(width);
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [red = 0] = (/\d+/.exec(ground) ?? []).map(Number);
    expect(red > 128).toBe(theme === 'light');
    await page.screenshot({ path: `test-results/report-${width}-${theme}.png`, fullPage: true });
  });
});

test('the system theme applies until the reader chooses one', async () => {
  const page = await open();
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await ground();
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await ground()).not.toBe(dark);
});

test('on paper it is light and has no controls', async () => {
  const page = await open('#theme=dark');
  await page.emulateMedia({ media: 'print' });
  const ground = await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
  expect(ground).toBe('light');
  expect(await page.locator('.choice').first().isVisible()).toBe(false);
});

test('transactions that were kept are a chart of clients over time, with a table behind it', async () => {
  const scans = resolve('test-results/scans.html');
  for (const [width, theme] of [[1180, 'light'], [390, 'dark']] as const) {
    const page = await browser.context.newPage();
    onTestFinished(() => page.close());
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${pathToFileURL(scans).href}#theme=${theme}`);
    const charts = page.locator('[data-gantt]');
    await page.waitForFunction(() => [...document.querySelectorAll('[data-gantt]')].every((chart) => chart.querySelector('svg')));
    expect(await charts.count()).toBe(2);
    for (const nth of [0, 1]) {
      const bars = charts.nth(nth).locator('[aria-label="bar"] rect');
      const boxes = await bars.evaluateAll((all) => all.map((bar) => bar.getBoundingClientRect().toJSON() as DOMRect));
      expect(boxes.length).toBe(8);
      // Each further client begins later, in a row of its own.
      for (const [n, box] of boxes.slice(1).entries()) {
        expect(box.x).toBeGreaterThan(boxes[n]?.x ?? Infinity);
        expect(box.y).toBeGreaterThan(boxes[n]?.y ?? Infinity);
      }
    }
    const ends = await charts.first().locator('[aria-label="bar"] rect').evaluateAll((all) => all.map((bar) => bar.getBoundingClientRect().right));
    const later = ends.slice(3);
    expect(Math.max(...later) - Math.min(...later)).toBeLessThan(2);
    expect(await charts.first().getAttribute('aria-label')).toContain('5 ended together');
    await page.locator('.gantt').first().getByRole('button', { name: 'table' }).click();
    const rows = page.locator('.gantt').first().locator('tbody tr');
    expect(await rows.count()).toBe(8);
    expect(await rows.nth(3).innerText()).toMatch(/6\.\d\d×/);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(wider).toBeLessThanOrEqual(0);
    const background = page.getByRole('table', { name: 'background workloads' }).locator('tbody tr');
    expect(await background.count()).toBe(2);
    expect(await background.first().innerText()).toMatch(/^select-only\s.*apart, repeat 1\s+8\s+184,203\s+0\s+2,000\s+92\.1 s/s);
    await page.screenshot({ path: `test-results/scans-${width}-${theme}.png`, fullPage: true });
  }
});
