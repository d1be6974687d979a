/** A real browser that records the requests and complaints of pages. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext } from 'playwright-core';

export interface Browser {
  context: BrowserContext;
  /** Requested URLs, and errors and warnings of pages. */
  requests: string[];
  complaints: string[];
  close(): Promise<void>;
}

/** `CHROMIUM` names a browser other than Debian's. */
export async function launch({ offline = false, bypassCSP = false } = {}): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'pgdyno-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    locale: 'en-US',
    offline,
    bypassCSP,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const requests: string[] = [];
  const complaints: string[] = [];
  context.on('request', (request) => requests.push(request.url()));
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  context.on('weberror', (error) => complaints.push(error.error().message));
  return {
    context,
    requests,
    complaints,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
