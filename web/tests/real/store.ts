/** The store that `npm run measure` left, its report, and the program that made them. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

export const STORE = resolve('test-results/real');
export const REPORT = pathToFileURL(resolve('test-results/real.html')).href;
export const PGDYNO = resolve(process.env.CARGO_TARGET_DIR ?? '../target', 'debug/pgdyno');

if (!existsSync(STORE) || !existsSync(PGDYNO)) throw new Error('there is no store to look at: run `npm run measure` first');

/** What a command of pgdyno says of a store, as JSON. */
export function json(...args: string[]): unknown {
  const said = execFileSync(PGDYNO, [...args, '--format', 'json'], { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
  return JSON.parse(said);
}

export { launch, type Browser } from '../launch';
