/** The store that `npm run measure` left, its report, and the program that made them. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PGDYNO } from '../serve';

export const STORE = resolve('test-results/real');
export const REPORT = pathToFileURL(resolve('test-results/real.html')).href;

if (!existsSync(STORE) || !existsSync(PGDYNO)) throw new Error('there is no store to show: run `npm run measure` first');

/** JSON output of a pgdyno command. */
export function json(...args: string[]): unknown {
  const output = execFileSync(PGDYNO, [...args, '--format', 'json'], { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
  return JSON.parse(output);
}

export { launch, type Browser } from '../launch';
export { PGDYNO, serve, stop, type Serving } from '../serve';
