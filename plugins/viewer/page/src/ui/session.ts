// The panels' properties: the recording, the position of the replay, and the user's actions.

import type { Recording } from "../format.ts";
import type { Replay } from "../replay.ts";
import type { State } from "../state.ts";

export interface Session {
  recording: Recording;
  replay: Replay;
  state: State;
  /** The position of the replay: the number of events before it. */
  at: number;
  /** The selected module; -1 for all. */
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
