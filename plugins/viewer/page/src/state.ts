// The state after a number of events. Every panel reads it, and only `apply` changes it.

import type { Event, Recording } from "./format.ts";

/** The status of a node, in the order of its life. */
export const Status = { Absent: 0, Made: 1, Waiting: 2, Ready: 3, Running: 4, Done: 5 } as const;

export interface Filling {
  bytes: number;
  added: number;
}

export interface OpenCall {
  call: number;
  step: number;
}

export interface OpenBackward {
  b: number;
  roots: number[];
  since: number;
}

export interface Arrived {
  node: number;
  label: string;
  bytes: number;
  times: number;
  at: number;
}

export class State {
  at = 0;
  time = 0;
  status: Uint8Array;
  /** Gradients that a node still waits for; -1 before they are counted. */
  left: Int32Array;
  wants: Int32Array;
  saved: Float64Array;
  used: Float64Array;
  started: Float64Array;
  buffers = new Map<number, Map<number, Filling>>();
  queues = new Map<string, number[]>();
  running = new Map<number, number[]>();
  calls = new Map<number, OpenCall[]>();
  backwards: OpenBackward[] = [];
  memory = new Map<string, number>();
  arrived = new Map<number, Arrived>();
  /** How many gradients were captured at a node. */
  captured = new Map<number, number>();
  lastCall = -1;
  lastRun = -1;
  savedBytes = 0;
  nodes = 0;
  done = 0;
  hooks = 0;
  optimizerSteps = 0;

  constructor(nodes: number) {
    this.status = new Uint8Array(nodes);
    this.left = new Int32Array(nodes).fill(-1);
    this.wants = new Int32Array(nodes).fill(-1);
    this.saved = new Float64Array(nodes);
    this.used = new Float64Array(nodes);
    this.started = new Float64Array(nodes);
  }

  copy(): State {
    const other = Object.assign(Object.create(State.prototype) as State, this);
    other.status = this.status.slice();
    other.left = this.left.slice();
    other.wants = this.wants.slice();
    other.saved = this.saved.slice();
    other.used = this.used.slice();
    other.started = this.started.slice();
    other.buffers = new Map([...this.buffers].map(([n, inputs]) => [n, copied(inputs)]));
    other.queues = new Map([...this.queues].map(([name, nodes]) => [name, nodes.slice()]));
    other.running = new Map([...this.running].map(([thread, nodes]) => [thread, nodes.slice()]));
    other.calls = new Map([...this.calls].map(([thread, open]) => [thread, open.map((one) => ({ ...one }))]));
    other.backwards = this.backwards.slice();
    other.memory = new Map(this.memory);
    other.arrived = copied(this.arrived);
    other.captured = new Map(this.captured);
    return other;
  }

  /** Take in the next event. */
  apply(event: Event): void {
    this.at += 1;
    this.time = event.t;
    switch (event.k) {
      case "call":
        stack(this.calls, event.th).push({ call: event.c, step: -1 });
        this.lastCall = event.c;
        break;
      case "step": {
        const open = stack(this.calls, event.th).findLast((one) => one.call === event.c);
        if (open) open.step = event.s;
        this.lastCall = event.c;
        break;
      }
      case "end": {
        const open = stack(this.calls, event.th);
        const place = open.findLastIndex((one) => one.call === event.c);
        if (place >= 0) open.length = place;
        break;
      }
      case "node":
        if (this.status[event.n] === Status.Absent) this.nodes += 1;
        this.status[event.n] = Math.max(this.status[event.n], Status.Made);
        break;
      case "save":
        this.saved[event.n] += event.bytes;
        this.savedBytes += event.bytes;
        break;
      case "free":
        this.savedBytes -= Math.min(this.saved[event.n], event.bytes);
        this.saved[event.n] = Math.max(0, this.saved[event.n] - event.bytes);
        break;
      case "memory":
        this.memory.set(event.device, event.bytes);
        break;
      case "optimizer":
        this.optimizerSteps += 1;
        break;
      default:
        this.applyBackward(event);
    }
  }

  private applyBackward(event: Event): void {
    switch (event.k) {
      case "backward":
        this.backwards.push({ b: event.b, roots: event.roots, since: event.t });
        break;
      case "backward_end":
        this.backwards = this.backwards.filter((one) => one.b !== event.b);
        if (!this.backwards.length) this.rest();
        break;
      case "dependencies":
        for (const [node, count] of event.counts) {
          this.left[node] = this.wants[node] = count;
          this.move(node, Status.Waiting);
        }
        break;
      case "count":
        this.left[event.n] = event.left;
        if (this.wants[event.n] < 0) this.wants[event.n] = event.left + 1;
        break;
      case "ready":
        stack(this.queues, event.q).push(event.n);
        this.move(event.n, Status.Ready);
        break;
      case "pop": {
        const queue = stack(this.queues, event.q);
        const place = queue.indexOf(event.n);
        if (place >= 0) queue.splice(place, 1);
        break;
      }
      case "run":
        stack(this.running, event.th).push(event.n);
        this.started[event.n] = event.t;
        this.buffers.delete(event.n);
        this.lastRun = event.n;
        this.move(event.n, Status.Running);
        break;
      case "ran": {
        const open = stack(this.running, event.th);
        const place = open.lastIndexOf(event.n);
        if (place >= 0) open.splice(place, 1);
        this.used[event.n] += event.t - this.started[event.n];
        this.move(event.n, Status.Done);
        break;
      }
      case "buffer": {
        const inputs = this.buffers.get(event.n) ?? new Map<number, Filling>();
        const before = inputs.get(event.i);
        inputs.set(event.i, { bytes: event.bytes, added: (before?.added ?? 0) + 1 });
        this.buffers.set(event.n, inputs);
        break;
      }
      case "capture":
        // It is taken out of the input buffer; a node that is needed for others runs then.
        this.buffers.delete(event.n);
        this.move(event.n, Status.Made);
        this.captured.set(event.n, (this.captured.get(event.n) ?? 0) + 1);
        break;
      case "hook":
        this.hooks += 1;
        break;
      case "grad": {
        const times = (this.arrived.get(event.n)?.times ?? 0) + 1;
        // Last come, last in the list.
        this.arrived.delete(event.n);
        this.arrived.set(event.n, { node: event.n, label: event.label, bytes: event.bytes, times, at: this.at });
        break;
      }
    }
  }

  /** Nodes that were not needed, or at which a gradient was only taken, wait no longer. */
  private rest(): void {
    this.buffers.clear();
    this.status.forEach((status, node) => {
      if (status === Status.Waiting || status === Status.Ready) this.status[node] = Status.Made;
    });
  }

  private move(node: number, to: number): void {
    const from = this.status[node];
    // A node without earlier events, for example of a graph from before the recording.
    if (from === Status.Absent) this.nodes += 1;
    if (from === Status.Done) this.done -= 1;
    if (to === Status.Done) this.done += 1;
    this.status[node] = to;
  }
}

function stack<K, V>(map: Map<K, V[]>, key: K): V[] {
  let found = map.get(key);
  if (!found) map.set(key, (found = []));
  return found;
}

function copied<V extends object>(map: Map<number, V>): Map<number, V> {
  return new Map([...map].map(([key, value]) => [key, { ...value }]));
}

/** The state of a graph alone: every node exists. */
export function finished(recording: Recording): State {
  const state = new State(recording.nodes.length);
  recording.nodes.forEach((node, number) => {
    state.status[number] = Status.Made;
    state.saved[number] = node.saved.reduce((sum, one) => sum + one.bytes, 0);
    state.savedBytes += state.saved[number];
  });
  state.nodes = recording.nodes.length;
  return state;
}
