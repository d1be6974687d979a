/** Ticks of an axis, and their labels. */

import { localized } from '../data/format';
import type { Range } from './timeline';

export interface Scale {
  low: number;
  high: number;
  log: boolean;
}

/** Round values between the ends of a linear axis, about `about` of them; powers of two apart for bytes. */
export function ticks(low: number, high: number, about: number, unit = ''): number[] {
  const raw = (high - low) / Math.max(1, about);
  if (!(raw > 0)) return [low];
  const step = unit.startsWith('B') && raw >= 1 ? 2 ** Math.ceil(Math.log2(raw)) : roundUp(raw);
  const found: number[] = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) found.push(Number((n * step).toPrecision(12)));
  return found;
}

/** Round seconds, minutes or hours between the ends of a time axis. */
export function timeTicks({ from, to }: Range, about: number): number[] {
  const raw = (to - from) / Math.max(1, about);
  const step = raw <= 10 ? roundUp(raw) : ([15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200].find((step) => step >= raw) ?? 3600 * roundUp(raw / 3600));
  const found: number[] = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n += 1) found.push(Number((n * step).toPrecision(12)));
  return found;
}

/** Powers of ten; if these are few, also values between them. */
export function logTicks(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const within = (tick: number) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9);
  const powers = Array.from({ length: last - first + 1 }, (_, n) => 10 ** (first + n));
  const tens = powers.filter(within);
  if (tens.length > 4) return tens.filter((_, n) => n % Math.ceil(tens.length / 5) === 0);
  return tens.length > 2 ? tens : powers.flatMap((power) => [power, 2 * power, 5 * power]).filter(within);
}

/** A linear axis from zero, or from below the smallest value if all are far from zero, to above the largest. */
export function linear(extremes: ([number, number] | null)[], fromZero: boolean): Scale {
  const known = extremes.filter((one) => one !== null);
  const low = Math.min(...known.map(([low]) => low));
  const high = Math.max(...known.map(([, high]) => high));
  if (known.length === 0) return { low: 0, high: 1, log: false };
  if (!fromZero && low > 0.6 * high && low < high) {
    const margin = (high - low) * 0.15;
    return { low: low - margin, high: high + margin, log: false };
  }
  const least = Math.min(0, low);
  return { low: least, high: high > least ? high + (high - least) * 0.08 : least + 1, log: false };
}

/** A logarithmic axis that extends beyond the values by a factor of 1.25 at either end. */
export function logarithmic(extremes: ([number, number] | null)[]): Scale {
  const known = extremes.flatMap((one) => one ?? []).filter((one) => one > 0);
  if (known.length === 0) return { low: 1, high: 10, log: true };
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return { low: low / 1.25, high: high * 1.25, log: true };
}

/** Position of a value between the ends, 0 to 1. */
export function along({ low, high, log }: Scale, value: number): number {
  return log ? Math.log(Math.max(value, low / 1e3) / low) / Math.log(high / low) : (value - low) / (high - low);
}

/** The value in the largest unit that keeps it at least 1, as `2.5 ms`, `64 MiB`; other units are left out: `12K`. */
export function tickLabel(value: number, unit: string): string {
  const ladder = LADDERS[unit.split('/')[0] ?? ''];
  let rung = 0;
  if (ladder) while (Math.abs(value) >= ladder.by * (1 - 1e-9) && rung + 1 < ladder.names.length) [value, rung] = [value / ladder.by, rung + 1];
  const digits = localized(value, { notation: ladder || Math.abs(value) < 10_000 ? 'standard' : 'compact', maximumSignificantDigits: 4 });
  return value === 0 || !ladder ? digits : `${digits} ${ladder.names[rung] ?? ''}`;
}

const LADDERS: Record<string, { by: number; names: string[] }> = {
  B: { by: 1024, names: ['B', 'KiB', 'MiB', 'GiB', 'TiB'] },
  µs: { by: 1000, names: ['µs', 'ms', 's'] },
  Hz: { by: 1000, names: ['Hz', 'kHz', 'MHz', 'GHz'] },
};

/** `40 s`; `2:30` on an axis of minutes. */
export function timeLabel(seconds: number, { from, to }: Range): string {
  const sign = seconds < 0 ? '−' : '';
  const absolute = Math.abs(seconds);
  if (Math.max(Math.abs(from), Math.abs(to)) < 180 || to - from < 60) {
    const decimals = to - from < 1 ? 2 : to - from < 60 ? 1 : 0;
    return `${sign}${localized(absolute, { maximumFractionDigits: decimals })} s`;
  }
  const whole = Math.round(absolute);
  const two = (n: number) => String(n).padStart(2, '0');
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours > 0 ? `${sign}${hours}:${two(minutes)}:${two(whole % 60)}` : `${sign}${minutes}:${two(whole % 60)}`;
}

/** The next of 1, 2, 5, 10, … */
function roundUp(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5, 10].find((step) => step * power >= raw * (1 - 1e-9)) ?? 10);
}
