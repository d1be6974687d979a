/** The view that the report crate put into the page: JSON, compressed by gzip, in base64. */

import type { View } from './view';

export async function readView(): Promise<View> {
  const text = document.getElementById('view')?.textContent.trim() ?? '';
  if (text === '' || text.includes('_')) {
    throw new Error('this is the empty page; `pgdyno report -o report.html` puts the figures into it.');
  }
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(json).json()) as View;
}
