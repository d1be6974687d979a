/** Charts by Observable Plot. */

import * as Plot from '@observablehq/plot';

/** Draws a chart hidden from screen readers: its surroundings describe it better than the names of Plot's groups. */
export function plot(options: Plot.PlotOptions): Element {
  const chart = Plot.plot(options);
  chart.setAttribute('aria-hidden', 'true');
  return chart;
}
