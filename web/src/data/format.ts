/** Formatting of figures. A missing figure is a dash, never zero. */

export const MISSING = '–';

/** The browser's own locale. */
export const LOCALE: string | undefined = undefined;

/** A figure: grouped by thousands; decimals only where they are needed for three significant digits. */
export function tps(value: number | null): string {
  if (value === null) return MISSING;
  const decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 || value === 0 ? 2 : value >= 0.09995 ? 3 : 4;
  return fixed(value, decimals);
}

export function count(value: number | null): string {
  return value === null ? MISSING : fixed(value, 0);
}

/** A round figure at the tick of an axis, with the decimals that it needs. */
export function tick(value: number): string {
  return value.toLocaleString(LOCALE, { maximumSignificantDigits: 6 });
}

/** `1 trial`, `2 trials`. */
export function counted(n: number, what: string): string {
  return `${count(n)} ${what}${n === 1 ? '' : 's'}`;
}

/** A relative change in per cent, with its sign. */
export function change(ratio: number | null): string {
  if (ratio === null) return MISSING;
  const percent = ratio * 100;
  const digits = fixed(Math.abs(percent), Math.abs(percent) >= 99.95 ? 0 : 1);
  if (Math.abs(percent) < 0.05) return `${digits}%`;
  return `${percent < 0 ? '−' : '+'}${digits}%`;
}

/** The upper end of a change's interval: beyond a hundredfold it carries no information. */
export function upper(ratio: number | null): string {
  return ratio !== null && ratio > 99 ? `>+${fixed(9900, 0)}%` : change(ratio);
}

/** A probability: `0.031`, or `< 0.001`. */
export function pValue(p: number | null): string {
  if (p === null) return MISSING;
  return p < 0.001 ? `< ${fixed(0.001, 3)}` : fixed(p, 3);
}

/** A share in per cent: `2.4%`. */
export function share(part: number): string {
  const percent = 100 * part;
  return `${fixed(percent, percent >= 9.95 ? 0 : percent >= 0.995 ? 1 : 2)}%`;
}

/** Latency in the unit that keeps it short: `870 µs`, `1.34 ms`, `2.10 s`. */
export function latency(us: number | null): string {
  if (us === null) return MISSING;
  if (us < 999.5) return `${significant(us)} µs`;
  if (us < 999_500) return `${significant(us / 1e3)} ms`;
  return `${significant(us / 1e6)} s`;
}

/** Bytes in the largest binary unit that gives at least 1. */
export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${fixed(value, unit === 0 || value >= 99.95 ? 0 : 1)} ${units[unit] ?? ''}`;
}

/** A metric's figure with its unit, which may be per second: `B`, `µs`, `Hz`; any other unit is appended. */
export function inUnit(value: number | null, unit: string): string {
  if (value === null) return MISSING;
  const [of = '', ...per] = unit.split('/');
  const behind = per.map((part) => `/${part}`).join('');
  if (of === 'B') return bytes(value) + behind;
  if (of === 'µs') return latency(value) + behind;
  if (of === 'Hz' && value >= 1e6) return `${significant(value / (value >= 1e9 ? 1e9 : 1e6))} ${value >= 1e9 ? 'GHz' : 'MHz'}`;
  const decimals = Math.abs(value) >= 99.95 ? 0 : 2 - Math.max(0, Math.floor(Math.log10(Math.abs(value) || 1)));
  const figure = localized(value, { maximumFractionDigits: Math.min(6, decimals) });
  return of === '' ? figure + (behind && ` ${behind}`) : `${figure} ${of}${behind}`;
}

/** A span of time in its two largest units: `4 min 12 s`. */
export function span(us: number): string {
  if (us < 1e6) return `${significant(us / 1e3)} ms`;
  const seconds = us / 1e6;
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  const parts = hours > 0 ? [part(hours, 'h'), part(minutes, 'min')] : [part(minutes, 'min'), part(whole % 60, 's')];
  return parts.filter(Boolean).join(' ');
}

/** A span in seconds only, for comparison of durations: `88.0 s`, `0.361 s`. */
export function seconds(us: number | null): string {
  if (us === null) return MISSING;
  const seconds = us / 1e6;
  return `${fixed(seconds, seconds >= 9.95 ? 1 : seconds >= 0.995 ? 2 : 3)} s`;
}

/** A time in UTC, to the minute: `2026-11-21 09:30 UTC`. */
export function minute(timestamp: string): string {
  return `${timestamp.slice(0, 10)} ${timestamp.slice(11, 16)} UTC`;
}

/** A time of day in UTC, to the second: `09:30:12 UTC`. */
export function second(timestamp: string): string {
  return `${timestamp.slice(11, 19)} UTC`;
}

/** A setting in the unit that a person would use: `16384` of `8kB` is `128 MB`. */
export function setting(value: string, unit: string | null): string {
  if (unit === null) return value;
  const [, times, base] = /^(\d*)(B|kB|MB|us|ms|s|min)$/.exec(unit) ?? [];
  const ladder = [SIZES, TIMES].find((rungs) => rungs.some(([name]) => name === base));
  if (!ladder || !/^\d+$/.test(value)) return `${value} ${unit}`;
  let amount = Number(value) * (times ? Number(times) : 1);
  let rung = ladder.findIndex(([name]) => name === base);
  for (let next = ladder[rung + 1]; next && amount > 0 && amount % next[1] === 0; next = ladder[rung + 1]) {
    amount /= next[1];
    rung += 1;
  }
  return `${amount} ${ladder[rung]?.[0] ?? ''}`;
}

/** PostgreSQL's units, each with its multiple of the one before. */
const SIZES: [string, number][] = [
  ['B', 1],
  ['kB', 1024],
  ['MB', 1024],
  ['GB', 1024],
  ['TB', 1024],
];
const TIMES: [string, number][] = [
  ['us', 1],
  ['ms', 1000],
  ['s', 1000],
  ['min', 60],
  ['h', 60],
  ['d', 24],
];

function part(n: number, unit: string): string {
  return n === 0 ? '' : `${n} ${unit}`;
}

function significant(value: number): string {
  return fixed(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

export function fixed(value: number, decimals: number): string {
  return localized(value, { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** Like `toLocaleString`, which is too slow for axes during panning. */
export function localized(value: number, options: Intl.NumberFormatOptions): string {
  const key = JSON.stringify(options);
  const format = FORMATS.get(key) ?? new Intl.NumberFormat(LOCALE, options);
  FORMATS.set(key, format);
  return format.format(value);
}

const FORMATS = new Map<string, Intl.NumberFormat>();
