// Play, pause, steps, speed and the slider.

import { time } from "../units.ts";
import { Icon } from "./icons.tsx";
import type { Session } from "./session.ts";

const SPEEDS = [1, 2, 5, 10, 25, 50, 100, 250, 1000, 5000];

/** Events a second at which the whole takes a minute or two. */
export function defaultSpeed(events: number): number {
  return SPEEDS.find((speed) => events / speed <= 120) ?? SPEEDS[SPEEDS.length - 1];
}

interface Properties {
  session: Session;
  playing: boolean;
  speed: number;
  setSpeed(speed: number): void;
  toggle(): void;
  step(direction: 1 | -1, large?: boolean): void;
}

export function Transport({ session, playing, speed, setSpeed, toggle, step }: Properties) {
  const { at, replay, state } = session;
  const speeds = SPEEDS.includes(speed) ? SPEEDS : [...SPEEDS, speed].sort((a, b) => a - b);
  return (
    <footer class="transport" aria-label="Replay">
      <div class="buttons">
        <button type="button" class="tool" onClick={() => session.seek(0)} aria-label="To the start" title="To the start (Home)">
          <Icon name="first" />
        </button>
        <button type="button" class="tool" onClick={() => step(-1)} aria-label="Step back" title="Step back (←)">
          <Icon name="back" />
        </button>
        <button type="button" class="tool play" onClick={toggle} aria-label={playing ? "Pause" : "Play"} title="Play, pause (space)">
          <Icon name={playing ? "pause" : "play"} />
        </button>
        <button type="button" class="tool" onClick={() => step(1)} aria-label="Step forward" title="Step forward (→)">
          <Icon name="forward" />
        </button>
        <button type="button" class="tool" onClick={() => session.seek(replay.length)} aria-label="To the end" title="To the end (End)">
          <Icon name="last" />
        </button>
      </div>
      <input
        type="range"
        class="slider"
        min={0}
        max={replay.length}
        value={at}
        style={{ "--done": `${(100 * at) / Math.max(replay.length, 1)}%` }}
        aria-label="Event"
        aria-valuetext={`event ${at} of ${replay.length}`}
        onInput={(event) => session.seek(Number(event.currentTarget.value))}
      />
      <output class="place" data-testid="place">
        <strong>{at.toLocaleString("en")}</strong> of {replay.length.toLocaleString("en")} · {time(state.time)}
      </output>
      <label class="speed">
        <span class="unseen">Speed</span>
        <select value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))} aria-label="Speed, in events a second" title="Events a second">
          {speeds.map((one) => (
            <option value={one}>{`${one.toLocaleString("en")}/s`}</option>
          ))}
        </select>
      </label>
    </footer>
  );
}
