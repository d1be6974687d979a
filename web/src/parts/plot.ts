/** Charts by Observable Plot. */

import * as Plot from '@observablehq/plot';

/** Draws one. What stands around it says what it shows, for who can't see it: the names of Plot's own groups say nothing. */
export function plot(options: Plot.PlotOptions): Element {
  const chart = Plot.plot(options);
  chart.setAttribute('aria-hidden', 'true');
  return chart;
}
