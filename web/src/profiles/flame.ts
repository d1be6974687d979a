/** Flame graphs: a role's functions as bars, as wide as their CPU time, each below its caller. */

import { counted } from '../data/format';
import { title } from '../data/trials';
import type { Frame, Profile, View } from '../data/generated/view';

/** A function at one place in the call tree, with the samples of one profile or of two. */
export interface Call {
  name: string;
  /** Names from the role on, separated by semicolons: the same in every profile. */
  path: string;
  self: Samples;
  total: Samples;
  parent: Call | null;
  children: Call[];
}

/** Samples of the displayed profile, and of the one it is compared with. */
export interface Samples {
  now: number;
  before: number;
  /** Half of their 95 % intervals by the spread between trials; null with one trial. */
  margin: { now: number | null; before: number | null };
}

/** CPU time per transaction that a sample stands for, in microseconds; null if transactions are unknown. */
export interface Scale {
  now: number | null;
  before: number | null;
}

export interface Bar {
  call: Call;
  row: number;
  /** As shares of the whole width. */
  left: number;
  width: number;
  /** Whether it is a caller of the root function of the view. */
  above: boolean;
}

const KERNEL = '_[k]';
/** Name of functions that are too narrow to be visible. */
const FOLDED = '(smaller)';
/** Two standard deviations, for 95 %. */
const DEVIATIONS = 1.96;

/** Name of a profile's cell. */
export function label(profile: Profile, view: View): string {
  const panel = view.panels[profile.panel];
  const clients = profile.clients === null ? '' : `, ${counted(profile.clients, 'client')}`;
  const what = isWaiting(profile) ? ': off CPU' : '';
  return `${panel ? title(panel) : ''}${clients}, ${view.columns[profile.column]?.label ?? ''}${what}`;
}

/** Whether it is an off-CPU profile, in which samples are microseconds. */
export function isWaiting(profile: Profile): boolean {
  return profile.kind === 'off-cpu';
}

export function scaleOf(profile: Profile): number | null {
  return profile.transactions ? profile.us_per_sample / profile.transactions : null;
}

/** A role's call tree, merged with that of another profile. */
export function calls(now: Frame | null, before: Frame | null, parent: Call | null = null): Call {
  const name = now?.name ?? before?.name ?? '';
  const call: Call = {
    name,
    path: parent ? `${parent.path};${name}` : name,
    self: { now: now?.self ?? 0, before: before?.self ?? 0, margin: { now: now?.self_margin ?? null, before: before?.self_margin ?? null } },
    total: { now: now?.total ?? 0, before: before?.total ?? 0, margin: { now: now?.margin ?? null, before: before?.margin ?? null } },
    parent,
    children: [],
  };
  const others = new Map((before?.children ?? []).map((child) => [child.name, child]));
  call.children = (now?.children ?? []).map((child) => {
    const other = others.get(child.name) ?? null;
    others.delete(child.name);
    return calls(child, other, call);
  });
  call.children.push(...[...others.values()].map((child) => calls(null, child, call)));
  return call;
}

/** The call with this path, or its innermost existing caller. */
export function at(root: Call, path: string): Call {
  let call = root;
  while (call.path !== path) {
    const next = call.children.find((child) => path === child.path || path.startsWith(`${child.path};`));
    if (!next) break;
    call = next;
  }
  return call;
}

/** The bars from `from` on, with its callers above; none narrower than `least`, a share of the width. */
export function bars(from: Call, least: number): Bar[] {
  const out: Bar[] = [];
  const callers: Call[] = [];
  for (let call = from.parent; call; call = call.parent) callers.unshift(call);
  for (const [row, call] of callers.entries()) out.push({ call, row, left: 0, width: 1, above: true });
  const whole = from.total.now || 1;
  const place = (call: Call, row: number, left: number) => {
    const width = call.total.now / whole;
    if (width < least || width === 0) return;
    out.push({ call, row, left, width, above: false });
    let next = left;
    for (const child of call.children) {
      place(child, row + 1, next);
      next += child.total.now / whole;
    }
  };
  place(from, callers.length, 0);
  return out;
}

export function isKernel(name: string): boolean {
  return name.endsWith(KERNEL);
}

export function isFolded(name: string): boolean {
  return name === FOLDED;
}

/** Whether a function's name contains the search text. */
export function isFound(name: string, find: string): boolean {
  return find !== '' && name.toLowerCase().includes(find.toLowerCase());
}

/** Samples of matching functions, including their callees. */
export function found(call: Call, find: string): Samples {
  if (isFound(call.name, find)) return call.total;
  return call.children.map((child) => found(child, find)).reduce(sum, none());
}

function none(): Samples {
  return { now: 0, before: 0, margin: { now: null, before: null } };
}

/** Sum of samples at two places; their spread between trials may have the same reason, so that margins add up. */
function sum(a: Samples, b: Samples): Samples {
  const both = (a: number | null, b: number | null) => (a === null ? b : a + (b ?? 0));
  const margin = { now: both(a.margin.now, b.margin.now), before: both(a.margin.before, b.margin.before) };
  return { now: a.now + b.now, before: a.before + b.before, margin };
}

export interface Function {
  name: string;
  self: Samples;
  total: Samples;
}

/** Every function, by its own CPU time; with two profiles, those that are new or gone first, then by the change, descending. */
export function functions(root: Call, change: ((samples: Samples) => Change) | null): Function[] {
  const all = new Map<string, Function>();
  const visit = (call: Call, above: Set<string>) => {
    const known = all.get(call.name) ?? { name: call.name, self: none(), total: none() };
    known.self = sum(known.self, call.self);
    const calledItself = above.has(call.name);
    // A recursive function counts once.
    if (!calledItself) known.total = sum(known.total, call.total);
    all.set(call.name, known);
    const below = calledItself ? above : new Set([...above, call.name]);
    for (const child of call.children) visit(child, below);
  };
  // The names of role and process are not functions.
  for (const process of root.children) for (const call of process.children) visit(call, new Set());
  const first = ({ self }: Function) => Number(change !== null && isNewOrGone(change(self)));
  const weight = ({ self }: Function) => (change ? Math.abs(change(self).more) : self.now);
  return [...all.values()].sort((a, b) => first(b) - first(a) || weight(b) - weight(a));
}

/** Change of CPU time per transaction, in microseconds. */
export interface Change {
  before: number;
  now: number;
  more: number;
  /**
   * Half of its 95 % interval: at least the random variation of sample counts, which is their square root, and that
   * between trials (Cochran's approximation of the interval of a difference, 1964).
   */
  chance: number;
}

/** The changes between two profiles; null if one of them has no transactions. */
export function changes({ now, before }: Scale): ((samples: Samples) => Change) | null {
  if (now === null || before === null) return null;
  return (samples) => {
    const { margin } = samples;
    const sampling = DEVIATIONS * Math.hypot(Math.sqrt(samples.now) * now, Math.sqrt(samples.before) * before);
    const spread = margin.now === null || margin.before === null ? 0 : Math.hypot(margin.now * now, margin.before * before);
    return {
      before: samples.before * before,
      now: samples.now * now,
      more: samples.now * now - samples.before * before,
      chance: Math.max(sampling, spread),
    };
  };
}

/** Whether a function is in one of the profiles only, and not by chance: of a thousand functions, some with few samples are. */
function isNewOrGone({ before, now, more, chance }: Change): boolean {
  return (before === 0 || now === 0) && Math.abs(more) > 2 * chance;
}

/** Whether the spread between trials is known: both profiles have several. */
export function hasSpread(...profiles: (Profile | undefined)[]): boolean {
  return profiles.every((profile) => profile !== undefined && profile.trials.length > 1);
}

/** Intensity of a bar's colour, from 0 to 1: the share of it that changed, or 0 if that may be chance. */
export function strength({ before, now, more, chance }: Change): number {
  return Math.abs(more) <= chance ? 0 : Math.abs(more) / Math.max(before, now);
}

/** A number from 0 to 1 that depends on the name only, so that neighbours differ in colour. */
export function shade(name: string): number {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 1009;
  return hash / 1008;
}
