/** Colours of the page for canvases, which know nothing of stylesheets. */

import { createSubscriber } from 'svelte/reactivity';

/** What a colour of a stylesheet, an expression such as `var(--ink)`, comes to in the theme that is shown. */
export interface Ink {
  (colour: string): string;
  font: string;
}

/** Said whenever the theme changes: by the reader, by the system, or because paper is light. */
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

/** The colours as they are now; what reads them is told when they change. */
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
