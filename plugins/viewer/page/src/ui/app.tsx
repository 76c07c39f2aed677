// The whole page: header, panels, timeline, transport, and the keys.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Recording } from "../format.ts";
import { moduleTitle, modulesWithNodes } from "../graph_model.ts";
import { note } from "../notes.ts";
import { eventsOfNodes, jumpTarget, Replay, stepFrom } from "../replay.ts";
import { count } from "../units.ts";
import { Details } from "./details.tsx";
import { Engine } from "./engine.tsx";
import { Graph } from "./graph.tsx";
import { Help } from "./help.tsx";
import { Icon } from "./icons.tsx";
import { Ladder } from "./ladder.tsx";
import { Modules } from "./modules.tsx";
import { Explanation } from "./explanation.tsx";
import { Program } from "./program.tsx";
import { Search } from "./search_box.tsx";
import type { Session } from "./session.ts";
import { Timeline } from "./timeline.tsx";
import { defaultSpeed, Transport } from "./transport.tsx";
import { useAppearance } from "./appearance.ts";

/** The shortest interval between announcements to a screen reader during play, in milliseconds. */
const BETWEEN_ANNOUNCEMENTS = 2500;

export function App({ recording }: { recording: Recording }) {
  const replay = useMemo(() => new Replay(recording), [recording]);
  const places = useMemo(() => eventsOfNodes(recording), [recording]);
  const alone = recording.events.length === 0;
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(defaultSpeed(recording.events.length));
  const [filter, setFilter] = useState(-1);
  const [selected, setSelected] = useState(-1);
  const [collapsed, setCollapsed] = useState<ReadonlySet<number>>(new Set());
  const [help, setHelp] = useState(false);
  const appearance = useAppearance();
  // Made once: thousands of modules would take longer with each step than all else.
  const choices = useMemo(
    () =>
      modulesWithNodes(recording)
        .filter((module) => recording.modules[module].name)
        .map((module) => <option value={module}>{moduleTitle(recording, module)}</option>),
    [recording],
  );
  const searching = useRef<HTMLInputElement>(null);

  const state = alone ? replay.state : replay.seek(at);
  const seek = useCallback((to: number) => setAt(Math.max(0, Math.min(replay.length, Math.round(to)))), [replay]);
  const step = useCallback(
    (direction: 1 | -1, large = false) => {
      setPlaying(false);
      setAt((now) => stepFrom(recording, now, direction, filter, large));
    },
    [recording, filter],
  );
  const toggle = useCallback(() => {
    setPlaying((now) => !now);
    setAt((now) => (now >= replay.length ? 0 : now));
  }, [replay]);
  const session: Session = {
    ...{ recording, replay, state, at, filter, selected, collapsed, playing, places },
    dark: appearance.dark,
    seek: (to) => (setPlaying(false), seek(to)),
    select: setSelected,
    filterBy: setFilter,
    collapse: setCollapsed,
    jump: (node) => {
      setSelected(node);
      setPlaying(false);
      const target = jumpTarget(recording, places[node] ?? []);
      if (target > 0) seek(target);
    },
  };

  usePlaying(playing, speed, recording, filter, setAt, () => setPlaying(false));
  useKeys({ alone, toggle, step, seek, replay, setHelp, setSelected, searching, appearance, setSpeed });

  const { title } = recording.about;
  return (
    <div class={alone ? "page alone" : "page"} data-at={at} data-playing={playing} data-testid="page">
      <header class="top">
        <div class="name">
          <h1>{title}</h1>
          <p class="about">{about(recording)}</p>
        </div>
        <Search session={session} input={searching} />
        <label class="filter">
          <span>Module</span>
          <select aria-label="Filter by module" value={filter} onChange={(event) => setFilter(Number(event.currentTarget.value))}>
            <option value={-1}>all</option>
            {choices}
          </select>
        </label>
        <div class="tools">
          <button type="button" class="tool" onClick={appearance.toggleText} aria-pressed={appearance.small} title="Small text (t)" aria-label="Small text">
            <Icon name="text" />
          </button>
          <button type="button" class="tool" onClick={appearance.toggleDark} aria-pressed={appearance.dark} title="Dark mode (d)" aria-label="Dark mode">
            <Icon name={appearance.dark ? "sun" : "moon"} />
          </button>
          <button type="button" class="tool" onClick={() => setHelp(true)} title="Keys and colours (?)" aria-label="Help">
            <Icon name="help" />
          </button>
        </div>
      </header>
      {recording.about.truncated && <p class="warning" role="status">{recording.about.truncated}</p>}
      <main class="panels">
        {!alone && (
          <div class="column left">
            <Program session={session} />
            <Ladder session={session} />
            <Modules session={session} />
          </div>
        )}
        <div class="column centre">
          <Graph session={session} />
          {selected >= 0 && <Details session={session} />}
        </div>
        {alone ? recording.modules.some((module) => module.name) && (
          <div class="column right">
            <Modules session={session} />
          </div>
        ) : (
          <div class="column right">
            <Explanation session={session} />
            <Engine session={session} />
          </div>
        )}
      </main>
      {!alone && <Timeline session={session} />}
      {!alone && <Transport {...{ session, playing, speed, setSpeed, toggle, step }} />}
      <Announcer text={alone ? "" : note(recording, state).sentence} playing={playing} />
      {help && <Help close={() => setHelp(false)} alone={alone} />}
    </div>
  );
}

function about(recording: Recording): string {
  const { plugrad, python, when } = recording.about;
  return [
    count(recording.nodes.length, "node"),
    recording.events.length ? count(recording.events.length, "event") : "",
    plugrad ? `plugrad ${plugrad}` : "",
    python ? `Python ${python}` : "",
    when ? when.slice(0, 16).replace("T", " ") : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Announcements to a screen reader: each event when the user steps, some of them during play. */
function Announcer({ text, playing }: { text: string; playing: boolean }) {
  const [said, setSaid] = useState("");
  const last = useRef(0);
  useEffect(() => {
    const now = performance.now();
    if (playing && now - last.current < BETWEEN_ANNOUNCEMENTS) return;
    last.current = now;
    setSaid(text);
  }, [text, playing]);
  return (
    <p class="unseen" role="status" aria-live="polite">
      {said}
    </p>
  );
}

function usePlaying(
  playing: boolean,
  speed: number,
  recording: Recording,
  filter: number,
  setAt: (change: (now: number) => number) => void,
  stop: () => void,
) {
  useEffect(() => {
    if (!playing) return;
    let frame = 0;
    let last = performance.now();
    let owed = 0;
    const tick = (now: number) => {
      owed += (Math.min(now - last, 500) / 1000) * speed;
      last = now;
      const steps = Math.floor(owed);
      owed -= steps;
      if (steps) {
        setAt((before) => {
          let place = before;
          for (let one = 0; one < steps && place < recording.events.length; one += 1) {
            place = stepFrom(recording, place, 1, filter);
          }
          if (place >= recording.events.length) stop();
          return place;
        });
      }
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, recording, filter]);
}

interface Keys {
  alone: boolean;
  toggle(): void;
  step(direction: 1 | -1, large?: boolean): void;
  seek(to: number): void;
  replay: Replay;
  setHelp(change: (shown: boolean) => boolean): void;
  setSelected(node: number): void;
  searching: { current: HTMLInputElement | null };
  appearance: ReturnType<typeof useAppearance>;
  setSpeed(change: (now: number) => number): void;
}

function useKeys(keys: Keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement;
      const writing = target.matches("input[type=search], select, textarea");
      const onSlider = target.matches("input[type=range]");
      const now = latest.current;
      const always: Record<string, () => void> = {
        Escape: () => (now.setHelp(() => false), now.setSelected(-1)),
      };
      const plain: Record<string, () => void> = {
        "/": () => now.searching.current?.focus(),
        "?": () => now.setHelp((shown) => !shown),
        d: now.appearance.toggleDark,
        t: now.appearance.toggleText,
      };
      const moving: Record<string, () => void> = now.alone
        ? {}
        : {
            ArrowRight: () => now.step(1, event.shiftKey),
            ArrowLeft: () => now.step(-1, event.shiftKey),
            Home: () => now.seek(0),
            End: () => now.seek(now.replay.length),
            "+": () => now.setSpeed((speed) => speed * 2),
            "-": () => now.setSpeed((speed) => speed / 2),
          };
      // A focused button already answers to the space bar.
      if (!now.alone && !target.matches("button, summary, a")) moving[" "] = now.toggle;
      const act = always[event.key] ?? (writing ? undefined : plain[event.key] ?? moving[event.key]);
      if (!act || (onSlider && event.key === "Tab")) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
