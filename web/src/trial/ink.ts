/** Colours of the page for canvases, which do not use stylesheets. */

import { createSubscriber } from 'svelte/reactivity';

/** The value of a stylesheet's colour expression, such as `var(--ink)`, in the current theme. */
export interface Ink {
  (colour: string): string;
  font: string;
}

/** Notifies of every change of theme: by the reader, by the system, or for printing, which is light. */
const changes = createSubscriber((changed) => {
  const themes = new MutationObserver(changed);
  themes.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  const media = ['(prefers-color-scheme: dark)', 'print'].map((query) => matchMedia(query));
  for (const one of media) one.addEventListener('change', changed);
  return () => {
    themes.disconnect();
    for (const one of media) one.removeEventListener('change', changed);
  };
});

/** The current colours; their readers are updated when they change. */
export function ink(): Ink {
  changes();
  const known = new Map<string, string>();
  const resolve = (colour: string) => {
    const before = known.get(colour);
    if (before !== undefined) return before;
    const probe = document.createElement('i');
    probe.style.color = colour;
    document.body.append(probe);
    const resolved = getComputedStyle(probe).color;
    probe.remove();
    known.set(colour, resolved);
    return resolved;
  };
  return Object.assign(resolve, { font: `11px ${getComputedStyle(document.body).fontFamily}` });
}
