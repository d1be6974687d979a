/**
 * A store whose strings are markup that would execute something: each page shows them as text, and executes and inserts
 * nothing; also without its content security policy, which would hide a mistake.
 */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { launch, type Browser } from '../launch';
import { serve, stop, type Serving } from '../serve';

/** Copied, as opening a store removes what killed runs left. */
const STORE = resolve('test-results/hostile');
const REPORT = pathToFileURL(resolve('test-results/hostile.html')).href;
if (!existsSync(STORE)) throw new Error(`there is no store in ${STORE}: run \`npm run fixture\` first`);

/** Ids of `hostile.rs`: the last run, two of its trials, and the run in progress. */
const RUN = '01KAK5W8XQ5T2M9HC4ZP110000';
const [TRIAL, AGAINST] = ['01KAK5W8XQ5T2M9HC4ZP110001', '01KAK5W8XQ5T2M9HC4ZP110000'];
const RUNNING = '01KAK6W8XQ5T2M9HC4ZP000000';

/** Fragments of the pages, each with a selector of what is drawn last. */
const PAGES: [fragment: string, drawn: string][] = [
  ['', '.chart svg'],
  [`page=trial&trial=${TRIAL}&against=${AGAINST}`, '[data-lane="tps"] canvas'],
  ['page=profiles', '.flame .bar'],
  ['page=history', 'main figure svg'],
  ['page=environment', 'main table'],
];

let store: string;
let serving: Serving;
/** Locks the live file of the run in progress, as its pgdyno would. */
let lock: ChildProcess;

beforeAll(async () => {
  store = mkdtempSync(join(tmpdir(), 'pgdyno-hostile-'));
  cpSync(STORE, store, { recursive: true });
  lock = spawn('flock', [join(store, `.live-${RUNNING}.jsonl`), 'sh', '-c', 'echo locked; exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
  if (lock.stdout) await once(lock.stdout, 'data');
  serving = await serve(store, '127.0.0.1:0');
});

afterAll(async () => {
  await stop(serving.child);
  lock.stdin?.end();
  await once(lock, 'exit');
  rmSync(store, { recursive: true, force: true });
});

/** Opens whatever can be opened, points at everything, and takes each choice. */
async function explore(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    for (const details of document.querySelectorAll('details')) details.open = true;
    await painted();
    for (const element of document.querySelectorAll('body *')) {
      const { x, y, width, height } = element.getBoundingClientRect();
      const at = { bubbles: true, clientX: x + width / 2, clientY: y + height / 2 };
      for (const kind of ['pointerenter', 'pointermove', 'mouseenter', 'mousemove']) element.dispatchEvent(new PointerEvent(kind, at));
      element.dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
    }
    await painted();
    for (const select of document.querySelectorAll('main select')) {
      for (const { value } of [...(select as HTMLSelectElement).options]) {
        (select as HTMLSelectElement).value = value;
        select.dispatchEvent(new Event('change', { bubbles: true }));
        await painted();
      }
    }
  });
}

/** What attacks have left in the document, and how many of them are shown as text. */
function traces(page: Page) {
  return page.evaluate(() => ({
    executed: 'attacked' in window,
    inserted: [...document.querySelectorAll('attack-element, img, iframe, object, embed, base, [onload], [onerror], body svg script')].map((element) => element.outerHTML),
    linked: [...document.querySelectorAll('[href], [src], [action]')]
      .flatMap((element) => ['href', 'src', 'action', 'xlink:href'].map((name) => element.getAttribute(name) ?? ''))
      .filter((link) => /^\s*javascript:/i.test(link)),
    shown: document.body.textContent.split('<attack-element>').length - 1,
  }));
}

describe.each([
  ['with', false],
  ['without', true],
])('%s its content security policy', (_, bypassCSP) => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch({ bypassCSP });
  });

  afterAll(() => browser.close());

  afterEach(() => {
    expect(browser.complaints.splice(0)).toEqual([]);
  });

  async function open(address: string, drawn: string): Promise<Page> {
    const page = await browser.context.newPage();
    onTestFinished(() => page.close());
    await page.goto(address);
    await page.waitForSelector(drawn);
    return page;
  }

  async function expectOnlyText(page: Page): Promise<void> {
    await explore(page);
    const { shown, ...rest } = await traces(page);
    expect(rest).toEqual({ executed: false, inserted: [], linked: [] });
    expect(shown).toBeGreaterThan(0);
  }

  test.each(PAGES)('a report file executes nothing: #%s', async (fragment, drawn) => {
    await expectOnlyText(await open(`${REPORT}#${fragment}`, drawn));
  });

  test.each(PAGES)('a served page executes nothing: #%s', async (fragment, drawn) => {
    await expectOnlyText(await open(`${serving.address}#run=${RUN}&${fragment}`, drawn));
  });

  test('the title, the list of runs and a run in progress execute nothing', async () => {
    const page = await open(`${serving.address}#page=live`, '.connection:not(.lost)');
    await page.waitForSelector('section.running figure svg');
    await expectOnlyText(page);
    await page.goto(`${serving.address}#run=${RUN}`);
    await page.waitForSelector('.chart svg');
    expect(await page.title()).toContain('<attack-element>');
    await expectOnlyText(page);
  });
});
