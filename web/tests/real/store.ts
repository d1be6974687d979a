/** The store that `npm run measure` left, its report, and the program that made them. */

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

export const STORE = resolve('test-results/real');
export const REPORT = pathToFileURL(resolve('test-results/real.html')).href;
export const PGDYNO = resolve(process.env.CARGO_TARGET_DIR ?? '../target', 'debug/pgdyno');

if (!existsSync(STORE) || !existsSync(PGDYNO)) throw new Error('there is no store to show: run `npm run measure` first');

/** JSON output of a pgdyno command. */
export function json(...args: string[]): unknown {
  const output = execFileSync(PGDYNO, [...args, '--format', 'json'], { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
  return JSON.parse(output);
}

export interface Serving {
  child: ChildProcess;
  address: string;
}

/** Serves a store; the address is the first line of output. */
export async function serve(store: string, listen: string): Promise<Serving> {
  const child = spawn(PGDYNO, ['serve', '--listen', listen, '--store', store], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [address] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { child, address };
}

/** Stops a process as Ctrl-C does. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGINT');
  await once(child, 'exit');
}

export { launch, type Browser } from '../launch';
