/**
 * Source of the figures: data that `pgdyno report -o FILE` embedded in the page (JSON, compressed by gzip, in base64),
 * or responses of `pgdyno serve`.
 */

import type { Detail } from './generated/detail';
import type { History } from './generated/history';
import type { Fleet, RunHead } from './live';
import type { View } from './generated/view';

export interface Source {
  /** Whether there is a store behind it, which may have several runs and new trials. */
  serves: boolean;
  /** The runs of the store, oldest first; none for a file. */
  runs(): Promise<RunHead[]>;
  /** The overview of a run; of the latest if none is named. */
  view(run: string | null): Promise<View>;
  /** Histories over versions, kernels or time, if there are enough figures. */
  histories(run: string): Promise<History[]>;
  /** One trial in detail; null if it is not in the file. */
  detail(trial: string): Promise<Detail | null>;
  /** Whether a trial can be shown in detail. */
  has(trial: string): boolean;
}

export function source(): Source {
  if (document.getElementById('view')) return file();
  if (location.protocol === 'file:') {
    throw new Error('this is the empty page; `pgdyno report -o report.html` writes one with results.');
  }
  return server();
}

function file(): Source {
  return {
    serves: false,
    runs: () => Promise.resolve([]),
    view: () => embedded<View>('view').then((view) => view ?? fail('the page has no data')),
    histories: () => embedded<History[]>('histories').then((histories) => histories ?? []),
    detail: (trial) => embedded<Detail>(`trial-${trial}`),
    has: (trial) => document.getElementById(`trial-${trial}`) !== null,
  };
}

async function embedded<T>(id: string): Promise<T | null> {
  const text = document.getElementById(id)?.textContent.trim();
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(json).json()) as T;
}

function server(): Source {
  return {
    serves: true,
    runs: () => answer<RunHead[]>('api/runs'),
    async view(run) {
      const id = run ?? (await answer<RunHead[]>('api/runs')).findLast(hasTrials)?.id;
      return id === undefined ? fail('The store has no trials yet: run a campaign first (pgdyno run FILE.toml).') : answer<View>(`api/runs/${id}`);
    },
    histories: (run) => answer<History[]>(`api/runs/${run}/histories`),
    detail: (trial) => answer<Detail>(`api/trials/${trial}`),
    has: () => true,
  };
}

function hasTrials({ valid, suspect, invalid }: RunHead): boolean {
  return valid + suspect + invalid > 0;
}

/** What the fleet does, if `pgdyno serve` shows one. */
export function fleet(): Promise<Fleet | null> {
  return answer<Fleet | null>('api/fleet');
}

async function answer<T>(path: string): Promise<T> {
  const response = await fetch(path).catch(() => fail('pgdyno serve does not respond: is it still running?'));
  if (response.ok) return (await response.json()) as T;
  const failure = (await response.json().catch(() => null)) as { error?: string } | null;
  return fail(failure?.error ?? `pgdyno serve returned ${response.status} for ${path}`);
}

function fail(why: string): never {
  throw new Error(why);
}
