// Goes to any place in a recording. Snapshots are kept every few hundred events, so that a step
// back and a jump cost a few hundred events at most, however long the recording is.

import { moduleOf, type Recording } from "./format.ts";
import { finished, State } from "./state.ts";

const SNAPSHOTS = 100;
const LEAST_DISTANCE = 200;

export class Replay {
  readonly recording: Recording;
  readonly length: number;
  state: State;
  private readonly distance: number;
  private readonly snapshots: State[] = [];

  constructor(recording: Recording) {
    this.recording = recording;
    this.length = recording.events.length;
    this.distance = Math.max(LEAST_DISTANCE, Math.ceil(this.length / SNAPSHOTS));
    this.state = this.length ? new State(recording.nodes.length) : finished(recording);
    this.snapshots.push(this.state.copy());
  }

  /** Set `state` to the state after the first `at` events. */
  seek(at: number): State {
    const goal = Math.max(0, Math.min(this.length, Math.round(at)));
    const nearest = Math.min(Math.floor(goal / this.distance), this.snapshots.length - 1);
    const start = nearest * this.distance;
    if (goal < this.state.at || start > this.state.at) this.state = this.snapshots[nearest].copy();
    while (this.state.at < goal) {
      this.state.apply(this.recording.events[this.state.at]);
      if (this.state.at === this.snapshots.length * this.distance) this.snapshots.push(this.state.copy());
    }
    return this.state;
  }
}

/** Whether a module is another one or inside of it. */
export function isInside(recording: Recording, module: number, outer: number): boolean {
  for (let one = module; one >= 0; one = recording.modules[one].parent) if (one === outer) return true;
  return false;
}

/** Whether a step does not stop after an event: memory is what another event has brought about. */
const passedOver = (kind: string): boolean => kind === "memory";

/** Where a step goes from `at`: to after the next (or former) event of the module that is asked
 * for, -1 for all; with `large`, of a kind that begins something. Stays within the recording. */
export function stepFrom(recording: Recording, at: number, direction: 1 | -1, module: number, large = false): number {
  const { events } = recording;
  for (let next = at + direction; next > 0 && next <= events.length; next += direction) {
    const event = events[next - 1];
    if (passedOver(event.k) || (large && !BEGINNINGS.has(event.k))) continue;
    if (module < 0 || isInside(recording, moduleOf(recording, event), module)) return next;
  }
  return direction > 0 ? events.length : 0;
}

const BEGINNINGS: ReadonlySet<string> = new Set(["call", "backward", "dependencies", "run", "backward_end", "optimizer"]);

/** The number of events before a time in microseconds. */
export function atTime(recording: Recording, time: number): number {
  let low = 0;
  let high = recording.events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (recording.events[middle].t <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** For each node, the places in the recording (1 is after the first event) at which it is named. */
export function eventsOfNodes(recording: Recording): number[][] {
  const found: number[][] = recording.nodes.map(() => []);
  recording.events.forEach((event, place) => {
    if ("n" in event) found[event.n]?.push(place + 1);
    else if (event.k === "backward") for (const root of event.roots) found[root]?.push(place + 1);
  });
  return found;
}

/** Where a jump to a node goes: to where it runs, else to where it joins the graph. */
export function jumpTarget(recording: Recording, places: number[]): number {
  const of = (kind: string) => places.find((place) => recording.events[place - 1].k === kind);
  return of("run") ?? of("node") ?? places[0] ?? -1;
}
