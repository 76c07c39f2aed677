// The graph, drawn by Cytoscape at the positions that the recording gives.

import cytoscape, { type Core } from "cytoscape";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { drawing, topModules } from "../graph_model.ts";
import { isInside } from "../replay.ts";
import { nodeOf, type Recording } from "../format.ts";
import { bytes, count } from "../units.ts";
import { graphStyle } from "./graph_style.ts";
import { Icon } from "./icons.tsx";
import type { Session } from "./session.ts";
import { LEAST_ZOOM, MANY, ShownGraph } from "./shown_graph.ts";

export function Graph({ session }: { session: Session }) {
  const { recording, collapsed, filter, selected, state, at, dark } = session;
  const holder = useRef<HTMLDivElement>(null);
  const graph = useRef<Core | null>(null);
  const shown = useRef<ShownGraph | null>(null);
  const looked = useRef(-1);
  const [follow, setFollow] = useState(true);
  const drawn = useMemo(() => {
    const whole = drawing(recording, collapsed);
    return whole.boxes.length > MANY ? { ...whole, frames: [] } : whole;
  }, [recording, collapsed]);
  const latest = useRef(session);
  latest.current = session;

  useEffect(() => {
    const cy = open(holder.current!, drawn.boxes.length > MANY);
    graph.current = cy;
    cy.on("tap", "node.box", (event) => latest.current.select(event.target.data("node") as number));
    cy.on("tap", (event) => event.target === cy && latest.current.select(-1));
    cy.on("dbltap", "node", (event) => {
      const module = event.target.data("toggles") as number;
      if (module < 0) return;
      const next = new Set(latest.current.collapsed);
      if (!next.delete(module)) next.add(module);
      latest.current.collapse(next);
    });
    return () => cy.destroy();
  }, []);

  useEffect(() => {
    graph.current?.style(graphStyle(drawn.boxes.length > MANY));
  }, [dark, drawn]);

  useEffect(() => {
    const cy = graph.current!;
    const first = shown.current === null;
    shown.current = new ShownGraph(cy, recording, drawn, state, isDim(recording, filter));
    if (first) {
      shown.current.lookAtStart();
      // For measurements of the time to open the page.
      cy.one("render", () => performance.mark("shown"));
    }
    return () => shown.current?.stop();
  }, [drawn]);

  const event = recording.events[at - 1];
  const focus = focusOf(session);
  useEffect(() => shown.current?.update(state, focus >= 0 ? focus : selected), [state, at]);

  const filtered = useRef(filter);
  useEffect(() => {
    if (filtered.current !== filter) shown.current?.dim(isDim(recording, filter));
    filtered.current = filter;
  }, [filter]);

  useEffect(() => {
    shown.current?.mark(focus, selected, event?.k === "buffer" ? state.lastRun : -1);
    // A node that was just chosen is looked at; after that the event is followed again.
    const chosen = selected !== looked.current && selected >= 0 ? selected : -1;
    looked.current = selected;
    if (chosen >= 0) shown.current?.lookAt(chosen, false);
    else if (follow && focus >= 0) shown.current?.lookAt(focus, session.playing);
  }, [focus, selected, at, drawn, follow]);

  const allShut = collapsed.size > 0;
  const text = `Graph of ${count(drawn.boxes.length, "box", "boxes")}: ${count(state.nodes, "node")}, ${bytes(state.savedBytes)} saved. Find single nodes with the search box.`;
  return (
    <section class="panel graph" aria-label="Graph">
      <div class="panel-head">
        <h2>Graph</h2>
        <span class="tag graph" data-testid="counts">{`${count(state.nodes, "node")} · ${bytes(state.savedBytes)} saved`}</span>
        <div class="tools">
          <button
            type="button"
            class="tool wide"
            onClick={() => session.collapse(allShut ? new Set() : new Set(topModules(recording)))}
            aria-label={allShut ? "Expand all modules" : "Collapse modules"}
          >
            <Icon name="shut" /> <span>{allShut ? "Expand" : "Collapse"}</span>
          </button>
          {recording.events.length > 0 && (
            <button type="button" class="tool wide" aria-pressed={follow} onClick={() => setFollow(!follow)} aria-label="Follow the current node">
              <Icon name="follow" /> <span>Follow</span>
            </button>
          )}
          <button type="button" class="tool" onClick={() => zoom(graph.current!, 1.4)} aria-label="Zoom in" title="Zoom in">
            <Icon name="plus" />
          </button>
          <button type="button" class="tool" onClick={() => zoom(graph.current!, 1 / 1.4)} aria-label="Zoom out" title="Zoom out">
            <Icon name="minus" />
          </button>
          <button type="button" class="tool" onClick={() => (setFollow(false), shown.current?.lookAtAll())} aria-label="Show the whole graph" title="Show the whole graph">
            <Icon name="fit" />
          </button>
        </div>
      </div>
      <div class="graph-canvas" ref={holder} role="img" aria-label={text} data-testid="graph" />
    </section>
  );
}

/** The node in focus: the event's, else the one that runs on its thread, else the node of the
 * previous events, as long as these are only about memory. */
function focusOf({ recording, state, at }: Session): number {
  for (let place = at - 1; place >= 0; place -= 1) {
    const event = recording.events[place];
    const node = nodeOf(recording, event);
    if (node >= 0) return node;
    const running = state.running.get(event.th)?.at(-1);
    if (running !== undefined) return running;
    if (event.k !== "memory") break;
  }
  return -1;
}

function open(container: HTMLElement, many: boolean): Core {
  return cytoscape({
    container,
    autoungrabify: true,
    boxSelectionEnabled: false,
    autounselectify: true,
    minZoom: LEAST_ZOOM,
    maxZoom: 3,
    // What keeps ten thousand boxes usable: while the view moves, a picture of the graph moves.
    textureOnViewport: many,
    hideEdgesOnViewport: many,
    pixelRatio: many ? 1 : "auto",
    layout: { name: "preset" },
  });
}

/** Whether a module is outside of the selected one; cached for each module. */
function isDim(recording: Recording, filter: number): (module: number) => boolean {
  const known = new Map<number, boolean>();
  return (module) => {
    if (!known.has(module)) known.set(module, filter >= 0 && !isInside(recording, module, filter));
    return known.get(module)!;
  };
}

function zoom(cy: Core, factor: number): void {
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
}
