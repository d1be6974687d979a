/** The live page of a server that refuses it at first. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { launch } from '../launch';
import { serve, stop } from '../serve';

test('a page that is refused because too many follow the server tries again', async () => {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const store = mkdtempSync(join(tmpdir(), 'pgdyno-live-'));
  onTestFinished(() => { rmSync(store, { recursive: true, force: true }); });
  mkdirSync(join(store, 'trials'));
  const serving = await serve(store, '127.0.0.1:0');
  onTestFinished(() => stop(serving.child));
  const page = await browser.context.newPage();
  await page.clock.install();
  let attempts = 0;
  await page.route('**/api/live', (route) => {
    attempts += 1;
    return attempts > 2 ? route.continue() : route.fulfill({ status: 503, json: { error: 'busy' } });
  });
  await page.goto(`${serving.address}#page=live`);
  await page.getByText('too many pages follow it').waitFor();
  const isConnected = async () => {
    await page.clock.runFor(10_000);
    return page.getByText('Connected').isVisible();
  };
  await expect.poll(isConnected, { timeout: 20_000 }).toBe(true);
  expect(attempts).toBe(3);
});
