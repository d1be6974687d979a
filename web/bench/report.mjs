/**
 * Opens the report in a browser ROUNDS times and prints medians as JSON, for `bench/report`.
 *
 *   node report.mjs open URL TRIAL ROUNDS CHROMIUM     to the first chart, and from there to a trial in detail
 *   node report.mjs pan URL TRIAL ROUNDS CHROMIUM      the frames while the timeline of a trial is panned
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [what, url, trial, rounds, executablePath] = process.argv.slice(2);
const PATIENCE_MS = 120_000;

/** Selectors of charts. */
const CHART = 'figure svg, figure canvas, .chart svg, .chart canvas';

/** Runs in the page before its own scripts: records the time at which the first chart has been drawn. */
function watch(selector) {
  const look = () => {
    const drawn = [...document.querySelectorAll(selector)].some((chart) => {
      const { width, height } = chart.getBoundingClientRect();
      return width > 50 && height > 50;
    });
    // The current document is on the screen with the next frame.
    if (drawn) requestAnimationFrame(() => requestAnimationFrame((now) => (globalThis.firstChart = now)));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** The page's address of a trial. */
function ofTrial(address, more = '') {
  const to = new URL(address);
  to.hash = `page=trial&trial=${trial}${more}`;
  return to.href;
}

async function withPage(use) {
  const profile = mkdtempSync(join(tmpdir(), 'pgdyno-speed-'));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    viewport: { width: 1280, height: 900 },
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'],
  });
  try {
    return await use(browser.pages()[0] ?? (await browser.newPage()));
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

async function open(page) {
  await page.addInitScript(watch, CHART);
  await page.goto(url, { waitUntil: 'commit' });
  await page.waitForFunction(() => globalThis.firstChart !== undefined, null, { timeout: PATIENCE_MS });
  const first_chart_s = (await page.evaluate(() => globalThis.firstChart)) / 1000;
  return { first_chart_s, trial_s: await openTrial(page) };
}

/** From the overview to the timeline of a trial; null if the page has none. */
async function openTrial(page) {
  const began = await page.evaluate((href) => {
    location.href = href;
    return performance.now();
  }, ofTrial(page.url()));
  const ended = await page
    .waitForFunction(() => document.querySelector('.lanes .plot canvas')?.clientWidth > 50 && performance.now(), null, { timeout: 10_000 })
    .then((handle) => handle.jsonValue())
    .catch(() => null);
  return ended === null ? null : (ended - began) / 1000;
}

async function pan(page) {
  // Half of the timeline is shown, and panned in both directions.
  await page.goto(ofTrial(url, '&zoom=25000-75000'), { waitUntil: 'commit' });
  const timeline = page.locator('.lanes .plot').first();
  const is_there = await timeline.waitFor({ timeout: PATIENCE_MS }).then(
    () => true,
    () => false,
  );
  if (!is_there) return { points: null, frames_per_s: null, longest_frame_s: null };
  await timeline.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await timeline.boundingBox();
  const middle = y + height / 2;
  await page.evaluate(() => {
    globalThis.frames = [];
    const frame = (now) => {
      globalThis.frames.push(now);
      globalThis.frameId = requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await page.keyboard.down('Shift');
  await page.mouse.move(x + width * 0.5, middle);
  await page.mouse.down();
  for (const to of [0.2, 0.8, 0.3, 0.7]) await page.mouse.move(x + width * to, middle, { steps: 40 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const frames = await page.evaluate(() => {
    cancelAnimationFrame(globalThis.frameId);
    return globalThis.frames;
  });
  const spans = frames.slice(1).map((at, place) => at - frames[place]);
  const detail = await page.evaluate(async (of) => (await fetch(`api/trials/${of}`)).json(), trial);
  return {
    points: detail.load.start_us.length,
    frames_per_s: (1000 * spans.length) / spans.reduce((sum, span) => sum + span, 0),
    longest_frame_s: Math.max(...spans) / 1000,
  };
}

function median(values) {
  if (values.some((value) => value === null)) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const all = [];
for (let round = 0; round < Number(rounds); round++) all.push(await withPage(what === 'pan' ? pan : open));
const names = Object.keys(all[0]);
console.log(JSON.stringify(Object.fromEntries(names.map((name) => [name, median(all.map((one) => one[name]))]))));
