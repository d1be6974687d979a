/** `pgdyno serve`, as the tests start it. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const PGDYNO = resolve(process.env.CARGO_TARGET_DIR ?? '../target', 'debug/pgdyno');

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
