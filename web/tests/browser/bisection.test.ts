/** The page of a bisection: the answer first, its chart by pointer and keyboard, the commit, and the comparisons behind it. */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { probability } from '../../src/overview/bisection';
import { typical } from '../../src/overview/verdicts';
import { bisecting } from '../../test-results/bisecting';
import { bisection as view } from '../../test-results/bisection';
import { launch, type Browser } from '../launch';

const [found] = view.bisections;
const [culprit] = found?.changes ?? [];
if (!found || !culprit) throw new Error('the fixture has found nothing');
const level = found.levels[culprit.first];

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
  await page.waitForSelector('.bisection svg');
  return page;
}

const chart = (page: Page) => page.getByRole('group', { name: 'Probability of the change' });

test('the answer is first, in the words of the text, and the only one', async () => {
  const page = await open('bisection');
  const answers = await page.locator('.answer').allInnerTexts();
  expect(answers.length).toBe(1);
  for (const part of [found.sentence, 'a commit is named at a probability of 95%', 'could not be measured']) expect(answers[0]).toContain(part);
  expect(await page.locator('main section h2').first().innerText()).toContain('Bisection');
  const trials = new URLSearchParams((await page.locator('.answer a').first().getAttribute('href'))?.slice(1));
  const point = (at: number) => {
    const place = found.levels[at]?.place;
    const of = place && view.panels[place.panel]?.rows[place.row]?.points[place.column];
    return of ? typical(of)?.id : null;
  };
  expect([trials.get('trial'), trials.get('against')]).toEqual([point(culprit.after), point(culprit.before)]);
});

test.each([1280, 390])('bars, measured levels and missing ones are drawn at %i pixels', async (width) => {
  const page = await open('bisection', '', width);
  const drawn = await chart(page).locator('.bar').evaluateAll((all) => all.map((bar) => ({ levels: bar.getAttribute('data-levels'), tall: bar.getBoundingClientRect().height })));
  const [highest] = drawn.toSorted((a, b) => b.tall - a.tall);
  const [from = 0, to = 0] = (highest?.levels ?? '').split(' ').map(Number);
  expect(from).toBeLessThanOrEqual(culprit.first);
  expect(to).toBeGreaterThanOrEqual(culprit.first);
  const levels = (attribute: string) => chart(page).locator(`[${attribute}]`).evaluateAll((all, attribute) => all.map((one) => Number(one.getAttribute(attribute))), attribute);
  const having = (is: (at: number) => boolean) => [...found.levels.keys()].filter(is);
  expect(await levels('data-measured')).toEqual(having((at) => found.levels[at]?.change !== null));
  expect(await levels('data-missing')).toEqual(having((at) => found.levels[at]?.unavailable !== null));
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
});

test('keys go from level to level, and the address keeps it', async () => {
  const page = await open('bisection');
  await chart(page).focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowUp');
  const details = page.locator('.bisected .details');
  const shown = found.levels.findLast(({ change }, at) => change !== null && at < found.levels.length - 1);
  for (const part of [shown?.short ?? '', shown?.title ?? '', 'sessions', probability(shown?.probability ?? null)]) expect(await details.innerText()).toContain(part);
  await page.waitForFunction((short) => location.hash.includes(`level=${short}`), shown?.short ?? '');
  const again = await open('bisection', `level=${level?.short ?? ''}`);
  expect(await again.locator('.bisected .details').innerText()).toContain('Check portals before each execution');
  await chart(again).focus();
  await again.keyboard.press('Escape');
  expect(await again.locator('.bisected .details').count()).toBe(0);
});

test('the pointer shows the level under it', async () => {
  const page = await open('bisection');
  const mean = chart(page).locator(`[data-measured="${culprit.first}"]`);
  await mean.hover();
  const text = await page.locator('.bisected .details').innerText();
  for (const part of [level?.short ?? '', probability(level?.probability ?? null), 'Its trials and those of']) expect(text).toContain(part);
});

test('the commit has its subject, author and files, and leads to its profile against the commit before', async () => {
  const page = await open('bisection');
  const text = await page.locator('.culprit').innerText();
  for (const part of [level?.short ?? '', level?.title ?? '', level?.author ?? '', ...(level?.files.map((file) => file.trim()) ?? []), probability(culprit.probability)]) expect(text).toContain(part);
  await page.getByRole('link', { name: 'difference of the profiles' }).click();
  await page.waitForSelector('.flames, [data-boxes]');
  const chosen = new URLSearchParams(new URL(page.url()).hash.slice(1));
  const column = (key: string) => view.profiles[Number(chosen.get(key))]?.column;
  expect([column('flame-profile'), column('flame-against')]).toEqual([found.levels[culprit.after]?.place?.column, found.levels[culprit.before]?.place?.column]);
});

test('candidates are listed, and every level is in the table of the chart', async () => {
  const page = await open('bisection');
  const rows = page.getByRole('table', { name: 'The most probable levels' }).locator('tbody tr');
  expect(await rows.count()).toBe(found.candidates.length);
  // Subjects are text, whatever is in them.
  expect(await rows.allInnerTexts().then((all) => all.join('\n'))).toContain('Escape <b>markup</b> & "quotes" in <script>alert(1)</script> messages');
  await page.getByRole('button', { name: 'table' }).first().click();
  expect(await page.getByRole('table', { name: 'the figures' }).locator('tbody tr').count()).toBe(found.levels.length);
});

test('comparisons of the measured levels are there when asked for', async () => {
  const page = await open('bisection');
  expect(await page.locator('.pairs').count()).toBe(0);
  expect(await page.locator('.verdicts').count()).toBe(0);
  await page.locator('.probes > summary').focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.pairs');
  expect(await page.locator('.pairs').count()).toBe(view.paired.length);
  expect(await page.locator('.verdicts tbody tr').count()).toBeGreaterThan(0);
});

test('a search that goes on has its probabilities, and the command that continues it', async () => {
  const page = await open('bisecting');
  const answer = await page.locator('.answer').innerText();
  for (const part of ['No answer', 'Not known yet', `pgdyno resume --run ${bisecting.bisections[0]?.run ?? ''}`]) expect(answer).toContain(part);
  expect(await page.locator('.culprit').count()).toBe(0);
  expect(await chart(page).locator('.bar').count()).toBe((bisecting.bisections[0]?.levels.length ?? 0) - 1);
});
