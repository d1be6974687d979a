/** The store that `npm run measure` left, its report, and the program that made them. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium, type BrowserContext } from 'playwright-core';

export const STORE = resolve('test-results/real');
export const REPORT = pathToFileURL(resolve('test-results/real.html')).href;
export const PGDYNO = resolve(process.env.CARGO_TARGET_DIR ?? '../target', 'debug/pgdyno');

if (!existsSync(STORE) || !existsSync(PGDYNO)) throw new Error('there is no store to look at: run `npm run measure` first');

/** What a command of pgdyno says of a store, as JSON. */
export function json(...args: string[]): unknown {
  const said = execFileSync(PGDYNO, [...args, '--format', 'json'], { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
  return JSON.parse(said);
}

export interface Browser {
  context: BrowserContext;
  /** What pages asked for, and what they complained about. */
  requests: string[];
  complaints: string[];
  close(): Promise<void>;
}

export async function launch(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'pgdyno-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    locale: 'en-US',
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
