/**
 * Screenshots of every page, on a desktop and a phone, in both themes: `npm run screenshots`. REPORT_HTML names the
 * report, PICTURES the directory (default: test-results/pictures), SHOWN that of the documentation's two (default: none).
 */

import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { launch, type Browser } from '../launch';

const REPORT = resolve(process.env.REPORT_HTML ?? 'test-results/report.html');
const PICTURES = resolve(process.env.PICTURES ?? 'test-results/pictures');
if (!existsSync(REPORT)) throw new Error(`there is no report in ${REPORT}: run \`npm run fixture\` first`);
const WIDTHS = [1280, 390];

/** Screenshots in the documentation: name, fragment and size. */
const SHOWN: [name: string, fragment: string, width: number, height: number][] = [
  ['report', 'theme=light', 1280, 1000],
  ['trial', 'page=trial&theme=light', 1280, 1000],
];

let browser: Browser;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  browser = await launch({ offline: true });
});
afterAll(() => browser.close());

async function picture(path: string, fragment: string, width: number, height: number, fullPage: boolean) {
  const page = await browser.context.newPage();
  onTestFinished(() => page.close());
  await page.setViewportSize({ width, height });
  await page.goto(`${pathToFileURL(REPORT).href}#${fragment}`);
  await page.waitForSelector('main:not([aria-busy="true"]) :is(section, h2)');
  // Charts are drawn in the frame after their size is known.
  await page.waitForFunction(() => [...document.querySelectorAll('.chart, .over-steps')].every((chart) => chart.querySelector('svg, canvas')));
  await page.screenshot({ path, fullPage });
  expect(browser.complaints).toEqual([]);
}

describe.each(['overview', 'trial', 'profiles', 'history', 'environment'])('%s', (name) => {
  test.each(WIDTHS.flatMap((width) => (['light', 'dark'] as const).map((theme) => [width, theme] as const)))('at %i pixels in %s', async (width, theme) => {
    await picture(join(PICTURES, `${name}-${width}-${theme}.png`), `page=${name}&theme=${theme}`, width, 900, true);
  });
});

test.runIf(process.env.SHOWN)('what the documentation shows', async () => {
  for (const [name, fragment, width, height] of SHOWN) await picture(resolve(process.env.SHOWN ?? '', `${name}.png`), fragment, width, height, false);
});
