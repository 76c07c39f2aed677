// The graph, drawn by Cytoscape at the positions that the recording gives.

import cytoscape, { type Core, type ElementDefinition } from "cytoscape";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { drawing, moduleTitle, topModules, type Box, type Drawing } from "../graph_model.ts";
import { isInside } from "../replay.ts";
import { nodeOf, type Recording } from "../format.ts";
import { Status, type State } from "../state.ts";
import { bytes, count } from "../units.ts";
import { graphStyle } from "./graph_style.ts";
import { Icon } from "./icons.tsx";
import type { Session } from "./session.ts";

/** Above this many boxes, arrows are straight lines without heads, and modules have no frames. */
const MANY = 1500;
/** Below this zoom nothing can be read: the view starts at the first node instead of the whole. */
const READABLE = 0.55;
const STATUS_CLASSES = ["absent", "made", "waiting", "ready", "running", "done"];

export function Graph({ session }: { session: Session }) {
  const { recording, collapsed, filter, selected, state, at, dark } = session;
  const holder = useRef<HTMLDivElement>(null);
  const graph = useRef<Core | null>(null);
  const shown = useRef<Shown | null>(null);
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
    cy.on("tap", "node.box", (event) => latest.current.select(clicked(event.target.data("box") as Box)));
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
    cy.batch(() => {
      cy.elements().remove();
      cy.add(elements(recording, drawn));
    });
    shown.current = new Shown(cy, recording, drawn);
    if (first) lookAtStart(cy);
  }, [drawn]);

  useEffect(() => shown.current?.update(state), [state, at, drawn]);

  useEffect(() => {
    const cy = graph.current!;
    const inside = new Map<number, boolean>();
    cy.batch(() => {
      cy.nodes(".box").forEach((node) => {
        const { module } = node.data("box") as Box;
        if (!inside.has(module)) inside.set(module, filter < 0 || isInside(recording, module, filter));
        node.toggleClass("dim", !inside.get(module));
      });
      cy.edges().forEach((edge) => {
        edge.toggleClass("dim", edge.source().hasClass("dim") && edge.target().hasClass("dim"));
      });
    });
  }, [filter, drawn]);

  const event = recording.events[at - 1];
  const focus = event ? nodeOf(recording, event) : -1;
  useEffect(() => {
    shown.current?.mark(focus, selected, event?.k === "buffer" ? state.lastRun : -1);
    const looked = selected >= 0 ? selected : focus;
    if (follow && looked >= 0) shown.current?.lookAt(looked, session.playing);
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
          <button type="button" class="tool" onClick={() => (setFollow(false), graph.current!.fit(undefined, 24))} aria-label="Show the whole graph" title="Show the whole graph">
            <Icon name="fit" />
          </button>
        </div>
      </div>
      <div class="graph-canvas" ref={holder} role="img" aria-label={text} data-testid="graph" />
    </section>
  );
}

function open(container: HTMLElement, many: boolean): Core {
  return cytoscape({
    container,
    autoungrabify: true,
    boxSelectionEnabled: false,
    autounselectify: true,
    minZoom: 0.01,
    maxZoom: 3,
    // What keeps ten thousand boxes usable: while the view moves, a picture of the graph moves.
    textureOnViewport: many,
    hideEdgesOnViewport: many,
    pixelRatio: many ? 1 : "auto",
    layout: { name: "preset" },
  });
}

function clicked(box: Box): number {
  return box.nodes[0];
}

function zoom(cy: Core, factor: number): void {
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
}

function lookAtStart(cy: Core): void {
  cy.fit(undefined, 24);
  if (cy.zoom() >= READABLE || !cy.nodes(".box").length) {
    if (cy.zoom() > 1.2) cy.zoom({ level: 1.2, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
    return;
  }
  cy.zoom(0.8);
  cy.center(cy.nodes(".box")[0]);
}

function elements(recording: Recording, { boxes, frames, arrows }: Drawing): ElementDefinition[] {
  const framed = new Set(frames.map((frame) => frame.id));
  return [
    ...frames.map(({ id, module, parent }) => ({
      data: { id, parent: parent ?? undefined, toggles: module, label: moduleTitle(recording, module) },
      classes: "frame",
    })),
    ...boxes.map((box) => ({
      data: {
        id: box.id,
        parent: box.parent && framed.has(box.parent) ? box.parent : undefined,
        toggles: box.collapsed ? box.module : -1,
        box,
        label: "",
      },
      position: { x: box.x, y: box.y },
      classes: `box ${box.collapsed ? "module" : recording.nodes[box.nodes[0]].kind}`,
    })),
    ...arrows.map(({ id, source, target, edges }) => ({ data: { id, source, target, edges } })),
  ];
}

/** What is on the screen, so that only boxes that change are touched. */
class Shown {
  private readonly status: Uint8Array;
  private readonly labels: string[];
  private readonly nodes: cytoscape.NodeSingular[];
  private readonly parents: Map<string, string | null>;
  private begun: Set<string>;
  private marked: cytoscape.CollectionReturnValue;
  private bounds: cytoscape.BoundingBox12 & cytoscape.BoundingBoxWH | undefined;

  constructor(
    private readonly cy: Core,
    private readonly recording: Recording,
    private readonly drawn: Drawing,
  ) {
    this.status = new Uint8Array(drawn.boxes.length).fill(255);
    this.labels = drawn.boxes.map(() => "");
    this.nodes = drawn.boxes.map((box) => cy.$id(box.id) as unknown as cytoscape.NodeSingular);
    this.marked = cy.collection();
    this.parents = new Map(drawn.frames.map((frame) => [frame.id, frame.parent]));
    this.begun = new Set(this.parents.keys());
  }

  update(state: State): void {
    this.cy.batch(() => {
      this.drawn.boxes.forEach((box, place) => {
        const status = statusOf(box, state);
        if (status !== this.status[place]) {
          const node = this.nodes[place];
          if (this.status[place] < STATUS_CLASSES.length) node.removeClass(STATUS_CLASSES[this.status[place]]);
          node.addClass(STATUS_CLASSES[status]);
          this.status[place] = status;
        }
        const label = labelOf(this.recording, box, state);
        if (label !== this.labels[place]) {
          this.nodes[place].data("label", label);
          this.labels[place] = label;
        }
      });
      this.updateFrames();
    });
  }

  /** Frames of modules of which nothing is there yet are as pale as their boxes. */
  private updateFrames(): void {
    const begun = new Set<string>();
    this.drawn.boxes.forEach((box, place) => {
      if (this.status[place] === Status.Absent) return;
      for (let id = box.parent; id && !begun.has(id); id = this.parents.get(id) ?? null) begun.add(id);
    });
    for (const { id } of this.drawn.frames) {
      if (begun.has(id) === this.begun.has(id)) continue;
      this.cy.$id(id).toggleClass("absent", !begun.has(id));
    }
    this.begun = begun;
  }

  /** Mark the node of the event, the selected one, and the edge over which a gradient goes. */
  mark(focus: number, selected: number, from: number): void {
    this.cy.batch(() => {
      this.marked.removeClass("current chosen flow");
      let marked = this.cy.collection();
      const add = (node: number, name: string) => {
        if (node >= 0) marked = marked.union(this.nodes[this.drawn.boxOf[node]].addClass(name));
      };
      add(focus, "current");
      add(selected, "chosen");
      if (from >= 0 && focus >= 0) {
        const [source, target] = [from, focus].map((node) => this.drawn.boxes[this.drawn.boxOf[node]].id);
        marked = marked.union(this.cy.$id(`${source}>${target}`).addClass("flow"));
      }
      this.marked = marked;
    });
  }

  /** Move the view if a node is not well inside of it. */
  lookAt(node: number, quick: boolean): void {
    const box = this.nodes[this.drawn.boxOf[node]];
    this.bounds ??= this.cy.elements().boundingBox();
    const { x, y } = box.renderedPosition();
    const [width, height] = [this.cy.width(), this.cy.height()];
    const inside = x > width * 0.15 && x < width * 0.85 && y > height * 0.15 && y < height * 0.85;
    if (inside && this.cy.zoom() > 0.3) return;
    const zoom = this.cy.zoom() > 0.3 ? this.cy.zoom() : 0.8;
    const place = box.position();
    // A graph that is narrow enough stays in the middle.
    if (this.bounds.w * zoom < width) place.x = (this.bounds.x1 + this.bounds.x2) / 2;
    const pan = { x: width / 2 - place.x * zoom, y: height / 2 - place.y * zoom };
    this.cy.stop();
    if (quick || calm()) this.cy.viewport({ zoom, pan });
    else this.cy.animate({ zoom, pan }, { duration: 200 });
  }
}

function calm(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function statusOf(box: Box, state: State): number {
  if (!box.collapsed) return state.status[box.nodes[0]];
  let [least, most] = [Status.Done as number, Status.Absent as number];
  for (const node of box.nodes) {
    const status = state.status[node];
    if (status === Status.Running) return status;
    least = Math.min(least, status);
    most = Math.max(most, status === Status.Done ? Status.Waiting : status);
  }
  return least === Status.Done ? least : most;
}

function labelOf(recording: Recording, box: Box, state: State): string {
  if (box.collapsed) {
    const done = box.nodes.filter((node) => state.status[node] === Status.Done).length;
    const nodes = count(box.nodes.length, "node");
    return `${moduleTitle(recording, box.module)}\n${done ? `${done} of ${nodes} have run` : nodes}`;
  }
  const number = box.nodes[0];
  const node = recording.nodes[number];
  const title = node.label || node.name.replace(/Backward\d*$/, "");
  const status = state.status[number];
  if (status === Status.Waiting && state.wants[number] > 0) {
    return `${title}\n${state.left[number] ? `waits for ${state.left[number]} of ${state.wants[number]}` : "has all gradients"}`;
  }
  if (status === Status.Ready) return `${title}\nready`;
  if (status === Status.Running) return `${title}\nruns`;
  return `${title}\n${node.shape ? `[${node.shape.join(", ")}]` : ""}`;
}
