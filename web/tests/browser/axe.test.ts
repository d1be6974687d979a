/** Findings of axe-core on each page, in both themes, on a desktop and on a phone. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AxeResults } from 'axe-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { launch, type Browser } from '../launch';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A file of `npm run fixture`, and a fragment of its URL. */
const PAGES: [file: string, fragment: string][] = [
  ['report', ''],
  ['report', 'page=trial'],
  ['report', 'page=profiles'],
  ['report', 'page=history'],
  ['report', 'page=environment'],
  ['scans', ''],
  ['pairs', ''],
  ['bisection', ''],
  ['replay', 'statement-of=0000000000000000'],
  ['bisection', 'level=f519f86ee238'],
  ['bisecting', ''],
  ['damaged', ''],
  ['mix', ''],
  ['mix', 'page=trial'],
  ['phases', ''],
  ['figures', ''],
  ['emulated', ''],
  ['kernels', ''],
  ['kernels', 'page=history'],
  ['kernels', 'page=environment'],
];

let browser: Browser;
beforeAll(async () => {
  // The page allows no script but its own.
  browser = await launch({ offline: true, bypassCSP: true });
});
afterAll(() => browser.close());

describe.each(PAGES)('%s.html#%s', (file, fragment) => {
  test.each([
    [1280, 'light'],
    [1280, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ])('at %i pixels in %s: nothing serious', async (width, theme) => {
    const page = await browser.context.newPage();
    onTestFinished(() => page.close());
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${pathToFileURL(resolve(`test-results/${file}.html`)).href}#${fragment}&theme=${theme}`);
    await page.waitForSelector('main:not([aria-busy="true"]) :is(section, h2)');
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => (window as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
    const found = violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')}`);
    expect(found).toEqual([]);
  });
});
