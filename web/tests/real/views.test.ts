/** Every view over a store of real runs, from the file and from `pgdyno serve`, compared with pgdyno's own output. */

import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { json, launch, REPORT, serve, stop, STORE, type Browser, type Serving } from './store';
import { change, count, latency, tps } from '../../src/data/format';
import type { History } from '../../src/data/generated/history';
import type { View } from '../../src/data/generated/view';

interface Shown {
  trial: { summary: { tps: number; transactions: number; latency: { p50_us: number; p95_us: number; p99_us: number } } };
}
interface Explanations {
  explained: { verdict: string; parts: { place: string; us: number; share: number }[] }[];
}

const view = json('report', '--store', STORE) as View;
const history = json('history', 'tps', '--over', 'version', '--store', STORE) as History;
const cells = view.panels.flatMap((panel) =>
  panel.rows.flatMap((row) => row.points.flatMap((point, at) => (point ? [{ panel, row, point, column: view.columns[at] }] : []))),
);
/** A trial of the first server and one of the last, in the same cell otherwise. */
const [baseline, latest] = (() => {
  const row = view.panels.flatMap(({ rows }) => rows).find(({ points }) => points[0] && points.at(-1));
  const first = row?.points[0]?.runs[0];
  const last = row?.points.at(-1)?.runs[0];
  if (!first || !last) throw new Error('the store has no row with the first and the last server');
  return [first.id, last.id];
})();

let browser: Browser;
let serving: Serving;
beforeAll(async () => {
  browser = await launch();
  serving = await serve(STORE, '127.0.0.1:0');
});
afterAll(async () => {
  await stop(serving.child);
  await browser.close();
});
afterEach(() => {
  expect(browser.complaints).toEqual([]);
  browser.complaints.length = 0;
  browser.requests.length = 0;
});

describe.each(['the file', 'pgdyno serve'])('from %s', (host) => {
  const address = () => (host === 'the file' ? REPORT : serving.address);

  async function open(fragment: string): Promise<Page> {
    const page = await browser.context.newPage();
    onTestFinished(() => page.close());
    await page.goto(`${address()}#${fragment}`);
    await page.waitForSelector('main:not([aria-busy="true"]) :is(section, h2)');
    return page;
  }

  test('no other host is contacted', async () => {
    const page = await open('');
    await page.locator('.chart svg').first().waitFor();
    const requested = browser.requests.filter((url) => !url.startsWith('data:'));
    if (host === 'the file') expect(requested).toEqual([REPORT]);
    else for (const url of requested) expect(new URL(url).origin).toBe(new URL(serving.address).origin);
  });

  test('every verdict has its change, its interval and the means of both sides', async () => {
    const page = await open('');
    const rows = await page.locator('.verdicts tbody tr').allInnerTexts();
    const judged = cells.filter(({ point }) => point.verdict);
    expect(judged.length).toBeGreaterThan(0);
    expect(rows.length).toBe(judged.length);
    for (const { panel, row, point, column } of judged) {
      const name = `scale ${count(panel.scale)}, ${count(row.clients)} client`;
      const text = rows.find((text) => text.includes(name) && text.includes(column?.label ?? '?')) ?? '';
      expect(text).toContain(change(point.verdict?.change ?? null));
      expect(text).toContain(change(point.verdict?.ci95_low ?? null));
      expect(text).toContain(tps(point.mean));
      expect(text).toContain(tps(row.points[0]?.mean ?? null));
      expect(text).toContain(point.verdict?.verdict.toLowerCase());
    }
  });

  test('every trial is a mark in its sweep', async () => {
    const page = await open('');
    await page.locator('[data-trial]').first().waitFor();
    const drawn = await page.locator('section.panel [data-trial]').evaluateAll((marks) => marks.map((mark) => mark.getAttribute('data-trial')));
    expect(drawn.toSorted()).toEqual(cells.flatMap(({ point }) => point.runs.map(({ id }) => id)).toSorted());
  });

  test('the heat map has the change of each scale and number of clients', async () => {
    const page = await open('');
    const squares = page.locator('.heat [data-square]');
    await squares.first().waitFor();
    const chosen = await page.locator('.heat select option:checked').innerText();
    const at = view.columns.findIndex(({ label }) => label === chosen);
    for (const { panel, row } of cells.filter(({ row }) => row.points[at]?.verdict)) {
      const square = page.locator(`.heat [data-square="${panel.scale} ${row.clients}"]`);
      expect(await square.textContent()).toContain(change(row.points[at]?.verdict?.change ?? null));
    }
  });

  test('a verdict leads to its two trials, whose figures are those of their bundles', async () => {
    const page = await open('');
    await page.locator('.verdicts tbody th a').first().click();
    await page.locator('.trial-head').waitFor();
    expect(page.url()).toMatch(/page=trial.*trial=.*against=/);
    await page.goBack();
    await page.locator('.verdicts').waitFor();

    const other = await open(`page=trial&trial=${latest}&against=${baseline}`);
    const head = other.locator('.trial-head', { hasText: 'pgdyno resume' });
    await head.waitFor();
    const text = await head.innerText();
    for (const id of [latest, baseline]) {
      const { trial } = json('store', 'show', id, '--store', STORE) as Shown;
      expect(text).toContain(id);
      expect(text).toContain(tps(trial.summary.tps));
      expect(text).toContain(count(trial.summary.transactions));
      for (const key of ['p50_us', 'p95_us', 'p99_us'] as const) expect(text).toContain(latency(trial.summary.latency[key]));
    }
  });

  test('where the time goes equals the output of pgdyno explain', async () => {
    const page = await open(`page=trial&trial=${latest}`);
    const { explained } = json('explain', latest, '--store', STORE) as Explanations;
    await page.getByRole('heading', { name: 'Where the time goes' }).waitFor();
    const text = (await page.locator('main').innerText()).toLowerCase();
    expect(text).toContain(explained[0]?.verdict.toLowerCase());
    for (const { us } of explained[0]?.parts.slice(0, 3) ?? []) expect(text).toContain(latency(us));
  });

  test('a timeline, a heat map of latencies, waits and a curve are drawn', async () => {
    const page = await open(`page=trial&trial=${latest}&against=${baseline}`);
    await page.locator('canvas').first().waitFor();
    const blank = await page.locator('canvas').evaluateAll((all) =>
      (all as HTMLCanvasElement[]).filter((canvas) => {
        const data = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
        return !data.some((value) => value !== 0);
      }).length,
    );
    expect(blank).toBe(0);
    for (const name of ['Throughput', 'Latency heat map, A', 'Latency heat map, B', 'What sessions wait for, A', 'pg.wal.bytes', 'Latency by percentile', 'Wait events']) {
      await page.getByRole('figure', { name, exact: true }).first().waitFor();
    }
  });

  test('the history has the medians of every version', async () => {
    const page = await open('page=history&history-over=version');
    const first = page.locator('.multiples figure').first();
    await first.waitFor();
    expect(await page.locator('.multiples figure').count()).toBe(history.cells.length);
    await first.getByRole('button', { name: 'table' }).click();
    const title = await first.getAttribute('aria-label');
    const cell = history.cells.find(({ cell }) => Object.entries(cell).every(([name, level]) => title?.includes(`${name} ${level}`)));
    const rows = (await first.locator('tbody tr').allInnerTexts()).join('\n');
    for (const point of cell?.points ?? []) if (point.median !== null) expect(rows).toContain(tps(point.median));
    for (const step of history.steps) expect(rows).toContain(step.label);
  });

  test('the environment has its facts, and the differences between two servers', async () => {
    const page = await open('page=environment');
    const text = await page.locator('main').innerText();
    for (const fact of view.environment.facts) expect(text).toContain(fact.name);
    expect(text).toContain('9.6.24');
    expect(text).toContain('wal_level');
  });
});

test('the file and the server show the same of a trial', async () => {
  const read = async (address: string) => {
    const page = await browser.context.newPage();
    onTestFinished(() => page.close());
    await page.goto(`${address}#page=trial&trial=${latest}&against=${baseline}`);
    // It appears with the trial's detail.
    await page.getByText('Measure this cell again').waitFor();
    return await page.locator('.trial-head').innerText();
  };
  expect(await read(serving.address)).toBe(await read(REPORT));
});
