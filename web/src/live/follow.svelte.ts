/** The running campaigns of the store, as reported by `pgdyno serve`. */

import { SvelteMap } from 'svelte/reactivity';
import { after, NOTHING, type Live } from './state';
import type { Message } from '../data/live';

export interface Following {
  readonly live: Live;
  /** Whether the server responds; the page reconnects by itself. */
  readonly connected: boolean;
  /** Number of trials that have appeared in the store, by run. */
  readonly appeared: ReadonlyMap<string, number>;
}

/** Pause after a response that an EventSource does not accept, such as 503 for too many listeners: it does not retry these. */
const RETRY_MS = 5000;

/** Follows them until the page is left. */
export function follow(): Following {
  let live = $state.raw(NOTHING);
  let connected = $state(false);
  const appeared = new SvelteMap<string, number>();
  function listen(): void {
    const messages = new EventSource('api/live');
    messages.onopen = () => (connected = true);
    messages.onerror = () => {
      connected = false;
      if (messages.readyState === EventSource.CLOSED) setTimeout(listen, RETRY_MS);
    };
    messages.onmessage = ({ data }: MessageEvent<string>) => {
      const message = JSON.parse(data) as Message;
      live = after(live, message);
      if (message.event.kind === 'trial' && message.run !== null) appeared.set(message.run, (appeared.get(message.run) ?? 0) + 1);
    };
  }
  listen();
  return {
    get live() {
      return live;
    },
    get connected() {
      return connected;
    },
    appeared,
  };
}
