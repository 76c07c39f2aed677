// The recording, as plugrad_viewer writes it: times in microseconds from its start, bytes, indices
// into the lists. -1 stands for none.

export interface TensorNote {
  name?: string;
  shape?: number[];
  dtype?: string;
  device?: string;
}

export interface Saved extends TensorNote {
  bytes: number;
  /** How often it had been changed in place when it was saved. */
  version?: number;
}

export interface Step {
  key: string;
  /** One of the recording's key sets. */
  keyset?: number;
  kernel: string;
  start: number;
  end: number;
  depth: number;
}

export interface Call {
  op: string;
  source: [number, number] | null;
  module: number;
  thread: number;
  start: number;
  end: number;
  parent: number;
  inputs: TensorNote[];
  outputs: TensorNote[];
  steps: Step[];
  node: number;
  raised?: boolean;
}

export type NodeKind = "function" | "leaf" | "root";

export interface GraphNode {
  name: string;
  call: number;
  module: number;
  kind: NodeKind;
  label: string;
  shape: number[] | null;
  edges: [number, number][];
  saved: Saved[];
  /** -1 is the highest one there is, or none. */
  sequence?: number;
  x: number;
  y: number;
  device?: string;
}

export interface Module {
  name: string;
  kind: string;
  parent: number;
}

export interface SourceStretch {
  file: string;
  first: number;
  lines: string[];
}

interface Moment {
  t: number;
  th: number;
}

export type Event = Moment &
  (
    | { k: "call"; c: number }
    | { k: "step"; c: number; s: number }
    | { k: "end"; c: number }
    | { k: "node"; n: number }
    | { k: "save"; n: number; bytes: number }
    | { k: "backward"; roots: number[]; b: number }
    | { k: "dependencies"; counts: [number, number][] }
    | { k: "ready"; n: number; q: string }
    | { k: "pop"; n: number; q: string }
    | { k: "capture"; n: number; i: number; bytes: number }
    | { k: "run"; n: number }
    | { k: "ran"; n: number }
    | { k: "buffer"; n: number; i: number; bytes: number; sum: boolean }
    | { k: "count"; n: number; left: number }
    | { k: "hook"; n: number; what: string; name: string; us?: number }
    | { k: "free"; n: number; bytes: number }
    | { k: "grad"; n: number; label: string; bytes: number }
    | { k: "backward_end"; b: number }
    | { k: "memory"; device: string; bytes: number }
    | { k: "optimizer"; name: string }
  );

export type EventKind = Event["k"];

export interface Recording {
  version: number;
  about: {
    title: string;
    plugrad?: string;
    python?: string;
    when?: string;
    truncated?: string | null;
  };
  sources: SourceStretch[];
  modules: Module[];
  threads: { name: string }[];
  keysets?: string[][];
  calls: Call[];
  nodes: GraphNode[];
  events: Event[];
}

/** The node that an event is about, or -1. */
export function nodeOf(recording: Recording, event: Event): number {
  if ("n" in event) return event.n;
  if ("c" in event) return recording.calls[event.c]?.node ?? -1;
  if (event.k === "backward") return event.roots[0] ?? -1;
  return -1;
}

/** The module that an event belongs to, or -1. */
export function moduleOf(recording: Recording, event: Event): number {
  if ("c" in event) return recording.calls[event.c]?.module ?? -1;
  if ("n" in event) return recording.nodes[event.n]?.module ?? -1;
  return -1;
}
