/** The live page of a server that refuses it at first. */

import { resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { launch } from '../launch';
import { serve, stop } from '../serve';

test('a page that is refused because too many follow the server tries again', async () => {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const serving = await serve(resolve('test-results/hostile'), '127.0.0.1:0');
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
