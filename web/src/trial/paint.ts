/** Lanes on canvases: background with axes, lines with bands, heat maps, stacked areas. */

import { along, logTicks, tickLabel, ticks, timeLabel, timeTicks, type Scale } from './axis';
import type { Drawn, Range } from './timeline';
import type { Ink } from './ink';
import type { Heat } from '../data/generated/detail';

/** Room for the axes, in pixels; the same in all lanes, so that times are aligned. */
export const LEFT = 72;
export const RIGHT = 10;
const TOP = 8;
const BOTTOM = 18;

export interface Sheet {
  context: CanvasRenderingContext2D;
  ink: Ink;
  shown: Range;
  /** The measured window, if a load ran. */
  window: Range | null;
  width: number;
  height: number;
}

/** An empty canvas of this size, at the density of the screen. */
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const density = Math.max(1, devicePixelRatio);
  if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
    [canvas.width, canvas.height] = [Math.round(width * density), Math.round(height * density)];
  }
  const context = canvas.getContext('2d');
  context?.setTransform(density, 0, 0, density, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

/** Position of a time, in pixels from the left. */
export function xOf({ shown, width }: Pick<Sheet, 'shown' | 'width'>, time: number): number {
  return LEFT + ((time - shown.from) / (shown.to - shown.from)) * (width - LEFT - RIGHT);
}

/** The time at a position, in pixels from the left. */
export function timeAt({ shown, width }: Pick<Sheet, 'shown' | 'width'>, x: number): number {
  return shown.from + ((x - LEFT) / (width - LEFT - RIGHT)) * (shown.to - shown.from);
}

/** Number of pixel columns of a series. */
export function columnsOf(width: number): number {
  return Math.max(1, Math.round(width - LEFT - RIGHT));
}

function yOf({ height }: Sheet, scale: Scale, value: number): number {
  return height - BOTTOM - along(scale, value) * (height - BOTTOM - TOP);
}

/** Axes, grid lines, and shading outside the measured window. */
export function drawAxes(sheet: Sheet, scale: Scale, unit: string) {
  const { context, ink, shown, window, width, height } = sheet;
  const [right, bottom] = [width - RIGHT, height - BOTTOM];
  if (window) {
    context.fillStyle = ink('var(--unmeasured)');
    for (const [from, to] of [[shown.from, window.from], [window.to, shown.to]] as const) {
      const [left, end] = [Math.max(LEFT, xOf(sheet, from)), Math.min(right, xOf(sheet, to))];
      if (end > left) context.fillRect(left, TOP, end - left, bottom - TOP);
    }
  }
  context.font = ink.font;
  context.lineWidth = 1;
  context.fillStyle = ink('var(--soft)');
  context.strokeStyle = ink('var(--rule)');
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  const values = scale.log ? logTicks(scale.low, scale.high) : ticks(scale.low, scale.high, Math.max(2, (bottom - TOP) / 26), unit);
  for (const value of values) {
    const y = Math.round(yOf(sheet, scale, value)) + 0.5;
    rule(context, LEFT, y, right, y);
    context.fillText(tickLabel(value, unit), LEFT - 7, y);
  }
  context.textBaseline = 'alphabetic';
  const times = timeTicks(shown, (right - LEFT) / 80);
  for (const time of times) {
    const x = Math.round(xOf(sheet, time)) + 0.5;
    context.strokeStyle = ink('var(--rule)');
    rule(context, x, TOP, x, bottom);
    const label = timeLabel(time, shown);
    const half = context.measureText(label).width / 2;
    context.textAlign = 'center';
    context.fillText(label, Math.min(Math.max(x, LEFT + half), width - half), height - 4);
  }
  context.strokeStyle = ink('var(--axis)');
  rule(context, LEFT, bottom + 0.5, right, bottom + 0.5);
}

/** A line with the band around it. */
export function line(sheet: Sheet, scale: Scale, { dense, x, y, band }: Drawn, colour: string, dashed: boolean) {
  const { context, ink, height } = sheet;
  const at = (nth: number) => xOf(sheet, x[nth] ?? NaN);
  clipped(sheet, () => {
    context.strokeStyle = context.fillStyle = ink(colour);
    if (band.x.length > 0) {
      context.globalAlpha = 0.2;
      context.beginPath();
      band.x.forEach((time, n) => { context.lineTo(xOf(sheet, time), yOf(sheet, scale, known(band.high[n], scale))); });
      for (let n = band.x.length - 1; n >= 0; n -= 1) context.lineTo(xOf(sheet, band.x[n] ?? NaN), yOf(sheet, scale, known(band.low[n], scale)));
      context.fill();
      context.globalAlpha = 1;
    }
    if (dense) {
      bars(sheet, scale, x, y, dashed ? 0.7 : 0.85);
      return;
    }
    context.lineWidth = 1.5;
    context.lineJoin = 'bevel';
    context.setLineDash(dashed ? [5, 3] : []);
    context.beginPath();
    let drawing = false;
    for (const [n, one] of y.entries()) {
      const missing = Number.isNaN(one) || (scale.log && one <= 0);
      if (!missing) {
        const top = Math.max(-height, Math.min(2 * height, yOf(sheet, scale, one)));
        if (drawing) context.lineTo(at(n), top);
        else context.moveTo(at(n), top);
        // A value between two gaps is a dot.
        if (!drawing && Number.isNaN(y[n + 1] ?? NaN)) context.lineTo(at(n) + 1.5, top);
      }
      drawing = !missing;
    }
    context.stroke();
    context.setLineDash([]);
  });
}

/** A line with several values per pixel column: from the smallest to the largest, joined with the column before. */
function bars(sheet: Sheet, scale: Scale, x: number[], y: number[], opacity: number) {
  const { context } = sheet;
  context.globalAlpha = opacity;
  let [above, below] = [Infinity, -Infinity];
  for (let n = 0; n < x.length; ) {
    const at = x[n] ?? 0;
    let [top, bottom] = [Infinity, -Infinity];
    for (; x[n] === at; n += 1) {
      const height = yOf(sheet, scale, y[n] ?? NaN);
      if (height < top) top = height;
      if (height > bottom) bottom = height;
    }
    const [from, to] = below === -Infinity || top > bottom ? [top, bottom] : [Math.min(top, below), Math.max(bottom, above)];
    if (from <= to) context.fillRect(Math.round(xOf(sheet, at) - 0.5), from - 0.6, 1, to - from + 1.2);
    [above, below] = [top, bottom];
  }
  context.globalAlpha = 1;
}

/** Number of colours of a heat map, from few to many. */
export const HEATS = 24;
export function heatColour(nth: number): string {
  const share = nth / (HEATS - 1);
  const [from, to, within] = share < 0.5 ? ['var(--heat-0)', 'var(--heat-1)', share * 2] : ['var(--heat-1)', 'var(--heat-2)', share * 2 - 1];
  return `color-mix(in oklab, ${to} ${(100 * within).toFixed(1)}%, ${from})`;
}

/** Index of the colour of a rate, with `most` as the largest; logarithmic, because a few slow transactions matter. */
export function heatOf(rate: number, most: number): number {
  const share = Math.log1p(rate) / Math.log1p(Math.max(most, 1e-9));
  return Math.min(HEATS - 1, Math.max(0, Math.round(share * (HEATS - 1))));
}

export function heatMap(sheet: Sheet, scale: Scale, { edges_us, start_us, width_us, counts }: Heat, offset: number, most: number) {
  const { context, ink, shown } = sheet;
  const colours = Array.from({ length: HEATS }, (_, nth) => ink(heatColour(nth)));
  const edges = edges_us.map((us) => Math.round(yOf(sheet, scale, us)));
  clipped(sheet, () => {
    for (const [column, rows] of counts.entries()) {
      const from = (start_us[column] ?? 0) / 1e6 + offset;
      const to = from + (width_us[column] ?? 0) / 1e6;
      if (to < shown.from || from > shown.to) continue;
      const left = Math.floor(xOf(sheet, from));
      const right = Math.max(left + 1, Math.floor(xOf(sheet, to)));
      for (const [row, count] of rows.entries()) {
        if (count === 0) continue;
        const [bottom, top] = [edges[row] ?? 0, edges[row + 1] ?? 0];
        context.fillStyle = colours[heatOf(count / (to - from), most)] ?? '';
        context.fillRect(left, top, right - left, Math.max(1, bottom - top));
      }
    }
  });
}

/** Stacked areas: `heights[layer]` has one value per pixel column, NaN if unknown. */
export function stacked(sheet: Sheet, scale: Scale, heights: number[][], colours: string[]) {
  const { context, ink } = sheet;
  clipped(sheet, () => {
    const below = heights[0]?.map(() => 0) ?? [];
    for (const [layer, of] of heights.entries()) {
      context.fillStyle = ink(colours[layer] ?? '');
      for (const [column, height] of of.entries()) {
        if (Number.isNaN(height) || height === 0) continue;
        const from = below[column] ?? 0;
        const [bottom, top] = [yOf(sheet, scale, from), yOf(sheet, scale, from + height)];
        context.fillRect(LEFT + column, top, 1.02, bottom - top + 0.3);
        below[column] = from + height;
      }
    }
  });
}

/** Clips drawing to the area between the axes. */
function clipped({ context, width, height }: Sheet, draw: () => void) {
  context.save();
  context.beginPath();
  context.rect(LEFT, TOP - 2, width - LEFT - RIGHT, height - BOTTOM - TOP + 2);
  context.clip();
  draw();
  context.restore();
}

function known(value: number | undefined, { low, log }: Scale): number {
  return value === undefined || Number.isNaN(value) ? low : log ? Math.max(value, low) : value;
}

function rule(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

