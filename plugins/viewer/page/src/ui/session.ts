// What the panels get: the recording, where the replay stands, and what a person can ask for.

import type { Recording } from "../format.ts";
import type { Replay } from "../replay.ts";
import type { State } from "../state.ts";

export interface Session {
  recording: Recording;
  replay: Replay;
  state: State;
  /** After how many events the replay stands. */
  at: number;
  /** The module that is looked at; -1 for all. */
  filter: number;
  selected: number;
  collapsed: ReadonlySet<number>;
  playing: boolean;
  dark: boolean;
  /** For each node, where it is named. */
  places: number[][];
  seek(at: number): void;
  select(node: number): void;
  jump(node: number): void;
  filterBy(module: number): void;
  collapse(modules: ReadonlySet<number>): void;
}
