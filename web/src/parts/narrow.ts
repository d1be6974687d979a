/** Widest window in which tables show less side by side, in pixels. style.css has the same. */
const NARROW = 600;

/** Whether a window of this width has room for little: that of a phone. */
export function isNarrow(width: number): boolean {
  return width > 0 && width <= NARROW;
}
