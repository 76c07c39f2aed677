// The timeline's data: what ran when on each thread, and memory over time.

import type { Recording } from "./format.ts";

export type SpanKind = "call" | "run" | "hook";

export interface Span {
  start: number;
  end: number;
  depth: number;
  kind: SpanKind;
  /** Of the call, or of the node that runs. */
  index: number;
  /** After which event it begins. */
  at: number;
  module: number;
}

export interface Lane {
  thread: number;
  depth: number;
  spans: Span[];
}

/** Deeper calls than this are left out of the picture. */
export const DEEPEST = 3;

/** One lane for each thread: calls and nodes that run, those inside others below them. */
export function lanes(recording: Recording): Lane[] {
  const found: Lane[] = recording.threads.map((_, thread) => ({ thread, depth: 0, spans: [] }));
  const open: Span[][] = recording.threads.map(() => []);
  recording.events.forEach((event, place) => {
    const lane = found[event.th];
    const stack = open[event.th];
    if (!lane) return;
    if (event.k === "call" || event.k === "run") {
      const kind = event.k;
      const index = event.k === "call" ? event.c : event.n;
      const module = (kind === "call" ? recording.calls[index] : recording.nodes[index])?.module ?? -1;
      const span: Span = { start: event.t, end: event.t, depth: stack.length, kind, index, at: place + 1, module };
      stack.push(span);
      if (span.depth <= DEEPEST) {
        lane.spans.push(span);
        lane.depth = Math.max(lane.depth, span.depth + 1);
      }
    } else if (event.k === "end" || event.k === "ran") {
      const kind = event.k === "end" ? "call" : "run";
      const index = event.k === "end" ? event.c : event.n;
      const where = stack.findLastIndex((span) => span.kind === kind && span.index === index);
      if (where >= 0) for (const span of stack.splice(where)) span.end = event.t;
    }
  });
  const last = recording.events.at(-1)?.t ?? 0;
  for (const stack of open) for (const span of stack) span.end = last;
  return found.filter((lane) => lane.spans.length);
}

export interface Bar extends Span {
  x: number;
  width: number;
  /** The number of spans in the bar: spans narrower than a pixel are joined. */
  spans: number;
}

/** The bars of a lane between two times, `width` pixels wide; neighbours of less than a pixel
 * become one bar, so that there are never more bars than pixels a level. */
export function bars(lane: Lane, from: number, to: number, width: number): Bar[] {
  const scale = width / Math.max(to - from, 1e-9);
  const found: Bar[] = [];
  const last: (Bar | undefined)[] = [];
  for (const span of lane.spans) {
    if (span.end < from || span.start > to) continue;
    const x = Math.max(0, (span.start - from) * scale);
    const end = Math.min(width, (span.end - from) * scale);
    const before = last[span.depth];
    if (before && end - before.x < 1.5 && before.kind === span.kind) {
      before.width = Math.max(before.width, end - before.x);
      before.spans += 1;
      continue;
    }
    const bar = { ...span, x, width: Math.max(end - x, 0.75), spans: 1 };
    last[span.depth] = bar;
    found.push(bar);
  }
  return found;
}

export interface Level {
  name: string;
  points: [number, number][];
  peak: number;
}

/** Bytes over time: of each device, and of tensors saved for backward. */
export function memory(recording: Recording): Level[] {
  const levels = new Map<string, Level>();
  const add = (name: string, time: number, value: number) => {
    let level = levels.get(name);
    if (!level) levels.set(name, (level = { name, points: [], peak: 0 }));
    level.points.push([time, value]);
    level.peak = Math.max(level.peak, value);
  };
  let saved = 0;
  for (const event of recording.events) {
    if (event.k === "memory") add(event.device, event.t, event.bytes);
    else if (event.k === "save") add(SAVED, event.t, (saved += event.bytes));
    else if (event.k === "free") add(SAVED, event.t, (saved = Math.max(0, saved - event.bytes)));
  }
  return [...levels.values()];
}

export const SAVED = "saved for backward";

/** The points of a level that `width` pixels can show: the highest of each pixel. */
export function thinned(points: [number, number][], from: number, to: number, width: number): [number, number][] {
  const scale = width / Math.max(to - from, 1e-9);
  const found: [number, number][] = [];
  let pixel = -1;
  let before: [number, number] | null = null;
  for (const point of points) {
    if (point[0] < from) {
      before = [from, point[1]];
      continue;
    }
    if (point[0] > to) break;
    if (before) {
      found.push(before);
      before = null;
    }
    const here = Math.floor((point[0] - from) * scale);
    if (here === pixel && found.length) {
      const last = found[found.length - 1];
      if (point[1] > last[1]) last[1] = point[1];
    } else found.push([point[0], point[1]]);
    pixel = here;
  }
  if (before) found.push(before);
  const last = found.at(-1);
  if (last) found.push([to, last[1]]);
  return found;
}

/** From when to when backward runs. */
export function backwards(recording: Recording): [number, number][] {
  const open = new Map<number, number>();
  const found: [number, number][] = [];
  for (const event of recording.events) {
    if (event.k === "backward") open.set(event.b, event.t);
    else if (event.k === "backward_end" && open.has(event.b)) {
      found.push([open.get(event.b)!, event.t]);
      open.delete(event.b);
    }
  }
  const last = recording.events.at(-1)?.t ?? 0;
  for (const start of open.values()) found.push([start, last]);
  return found;
}
