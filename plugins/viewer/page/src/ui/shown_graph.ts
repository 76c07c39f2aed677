// What Cytoscape shows of a drawing, kept in step with the state: only boxes that change are
// touched, and of a large graph what is looked at comes first.

import type { CollectionReturnValue, Core, EdgeSingular, ElementDefinition, NodeSingular } from "cytoscape";
import { moduleTitle, type Arrow, type Box, type Drawing } from "../graph_model.ts";
import type { Recording } from "../format.ts";
import { Status, type State } from "../state.ts";
import { count } from "../units.ts";

/** Above this many boxes, arrows are straight lines without heads, and modules have no frames. */
export const MANY = 1500;
/** The number of boxes that are added at a time: few at first, then more while the browser is idle. */
const FIRST = 400;
const NEXT = 1600;
/** So many boxes of a large graph change at a time: each costs a tenth of a millisecond or more. */
const AT_ONCE = 400;
/** Below this zoom nothing can be read: the view starts at the first node instead of the whole. */
const READABLE = 0.55;
export const LEAST_ZOOM = 0.001;
const START_ZOOM = 0.8;
const FOLLOWED_ZOOM = 0.3;
const STATUS_CLASSES = ["absent", "made", "waiting", "ready", "running", "done"];

export class ShownGraph {
  private readonly boxes: Box[];
  private readonly many: boolean;
  private readonly status: Uint8Array;
  private readonly left: Int32Array;
  /** The boxes that Cytoscape has by now: the first ones. */
  private readonly nodes: NodeSingular[] = [];
  private readonly arrows: Arrow[];
  /** The arrows that Cytoscape has, whether each is absent, and for each box the places of its. */
  private readonly edges: EdgeSingular[] = [];
  private readonly edgeAbsent: Uint8Array;
  private readonly edgesOf: number[][];
  private readonly placeOf: Map<string, number>;
  private readonly parents: Map<string, string | null>;
  private begun: Set<string>;
  private marked: CollectionReturnValue;
  private waiting = 0;
  private late = 0;
  private readonly extent: { x1: number; x2: number; y1: number; y2: number };

  constructor(
    private readonly cy: Core,
    private readonly recording: Recording,
    private readonly drawn: Drawing,
    private state: State,
    private isDim: (module: number) => boolean,
  ) {
    this.boxes = drawn.boxes;
    this.many = drawn.boxes.length > MANY;
    this.status = new Uint8Array(drawn.boxes.length);
    this.left = new Int32Array(drawn.boxes.length);
    this.placeOf = new Map(drawn.boxes.map((box, place) => [box.id, place]));
    this.arrows = drawn.arrows
      .map((arrow) => ({ arrow, last: Math.max(this.placeOf.get(arrow.source)!, this.placeOf.get(arrow.target)!) }))
      .sort((a, b) => a.last - b.last)
      .map(({ arrow }) => arrow);
    this.edgeAbsent = new Uint8Array(this.arrows.length);
    this.edgesOf = this.boxes.map(() => []);
    this.extent = extent(drawn);
    this.parents = new Map(drawn.frames.map((frame) => [frame.id, frame.parent]));
    this.begun = new Set(this.parents.keys());
    this.marked = cy.collection();
    cy.batch(() => {
      cy.elements().remove();
      cy.add(this.frames());
      this.add(this.many ? FIRST : this.boxes.length);
      this.updateFrames();
    });
    this.addLater();
  }

  /** Add no more: another drawing takes its place. */
  stop(): void {
    clearTimeout(this.waiting);
    clearTimeout(this.late);
    this.cy.stop();
  }

  private addLater(): void {
    if (this.nodes.length === this.boxes.length) return;
    this.waiting = window.setTimeout(() => {
      this.cy.batch(() => this.add(NEXT));
      this.addLater();
    }, 50);
  }

  /** Elements have their classes and labels from the start: each change later costs as much again. */
  private add(most: number): void {
    const end = Math.min(this.boxes.length, this.nodes.length + most);
    const added: ElementDefinition[] = [];
    for (let place = this.nodes.length; place < end; place += 1) {
      const box = this.boxes[place];
      this.status[place] = statusOf(box, this.state);
      this.left[place] = countOf(box, this.state);
      added.push(this.boxElement(box, this.status[place]));
    }
    const arrows: string[] = [];
    for (let place = this.edges.length; place < this.arrows.length; place += 1) {
      const { id, source, target } = this.arrows[place];
      const ends = this.endsOf(place);
      if (Math.max(...ends) >= end) break;
      for (const box of ends) this.edgesOf[box].push(place);
      this.edgeAbsent[place] = this.isAbsent(place) ? 1 : 0;
      const dim = ends.every((box) => this.isDim(this.boxes[box].module)) ? "dim" : "";
      added.push({ data: { id, source, target }, classes: `${this.edgeAbsent[place] ? "absent" : ""} ${dim}` });
      arrows.push(id);
    }
    this.cy.add(added);
    while (this.nodes.length < end) {
      this.nodes.push(this.cy.$id(this.boxes[this.nodes.length].id) as unknown as NodeSingular);
    }
    for (const id of arrows) this.edges.push(this.cy.$id(id) as unknown as EdgeSingular);
  }

  private endsOf(arrow: number): [number, number] {
    const { source, target } = this.arrows[arrow];
    return [this.placeOf.get(source)!, this.placeOf.get(target)!];
  }

  private isAbsent(arrow: number): boolean {
    return this.endsOf(arrow).some((place) => this.status[place] === Status.Absent);
  }

  private boxElement(box: Box, status: number): ElementDefinition {
    const { recording } = this;
    const kind = box.collapsed ? "module" : recording.nodes[box.nodes[0]].kind;
    return {
      data: {
        id: box.id,
        parent: box.parent && this.parents.has(box.parent) ? box.parent : undefined,
        toggles: box.collapsed ? box.module : -1,
        node: box.nodes[0],
        label: labelOf(recording, box, this.state, this.many),
      },
      position: { x: box.x, y: box.y },
      classes: `box ${kind} ${STATUS_CLASSES[status]} ${this.isDim(box.module) ? "dim" : ""}`,
    };
  }

  private frames(): ElementDefinition[] {
    return this.drawn.frames.map(({ id, module, parent }) => ({
      data: { id, parent: parent ?? undefined, toggles: module, label: moduleTitle(this.recording, module) },
      classes: "frame",
    }));
  }

  /** Bring classes and labels up to the state. After a jump through a large graph, the boxes in the
   * view and around a node come first, the others while nobody waits. */
  update(state: State, around: number): void {
    this.state = state;
    const changed = this.changed();
    if (!this.many || changed.length <= AT_ONCE) {
      this.show(changed);
      return;
    }
    const isSeen = this.seen(around);
    this.show(changed.filter(isSeen));
    this.showLater();
  }

  private showLater(): void {
    if (this.late) return;
    this.late = window.setTimeout(() => {
      this.late = 0;
      const changed = this.changed();
      this.show(changed.slice(0, AT_ONCE));
      if (changed.length > AT_ONCE) this.showLater();
    }, 50);
  }

  /** The places of boxes that do not look as the state says. */
  private changed(): number[] {
    const found: number[] = [];
    for (let place = 0; place < this.nodes.length; place += 1) {
      const box = this.boxes[place];
      if (statusOf(box, this.state) !== this.status[place] || countOf(box, this.state) !== this.left[place]) {
        found.push(place);
      }
    }
    return found;
  }

  /** Whether a box is in the view, or will be when that shows a node. */
  private seen(around: number): (place: number) => boolean {
    const { x1, x2, y1, y2 } = this.cy.extent();
    const middle = around >= 0 ? this.boxes[this.drawn.boxOf[around]] : { x: (x1 + x2) / 2, y: (y1 + y2) / 2 };
    const zoom = this.followedZoom();
    const [wide, high] = [this.cy.width() / zoom, this.cy.height() / zoom];
    return (place) => {
      const { x, y } = this.boxes[place];
      if (x > x1 && x < x2 && y > y1 && y < y2) return true;
      return Math.abs(x - middle.x) < wide && Math.abs(y - middle.y) < high;
    };
  }

  /** Bring some boxes up to the state, and the arrows that come and go with them. */
  private show(places: number[]): void {
    this.cy.batch(() => {
      for (const place of places) {
        const box = this.boxes[place];
        const [status, before] = [statusOf(box, this.state), this.status[place]];
        const node = this.nodes[place];
        if (status !== before) {
          node.removeClass(STATUS_CLASSES[before]);
          node.addClass(STATUS_CLASSES[status]);
        }
        if (!this.many) node.data("label", labelOf(this.recording, box, this.state, false));
        this.status[place] = status;
        this.left[place] = countOf(box, this.state);
      }
      for (const place of places) {
        for (const arrow of this.edgesOf[place]) {
          const absent = this.isAbsent(arrow) ? 1 : 0;
          if (absent === this.edgeAbsent[arrow]) continue;
          this.edges[arrow].toggleClass("absent", absent === 1);
          this.edgeAbsent[arrow] = absent;
        }
      }
      this.updateFrames();
    });
  }

  /** Frames of modules without existing nodes are as pale as their boxes. */
  private updateFrames(): void {
    if (!this.drawn.frames.length) return;
    const begun = new Set<string>();
    this.boxes.forEach((box, place) => {
      if (this.status[place] === Status.Absent) return;
      for (let id = box.parent; id && !begun.has(id); id = this.parents.get(id) ?? null) begun.add(id);
    });
    for (const { id } of this.drawn.frames) {
      if (begun.has(id) !== this.begun.has(id)) this.cy.$id(id).toggleClass("absent", !begun.has(id));
    }
    this.begun = begun;
  }

  /** Make all boxes pale except the boxes of some modules. */
  dim(isDim: (module: number) => boolean): void {
    this.isDim = isDim;
    this.cy.batch(() => {
      this.nodes.forEach((node, place) => node.toggleClass("dim", isDim(this.boxes[place].module)));
      this.cy.edges().forEach((edge) => {
        edge.toggleClass("dim", edge.source().hasClass("dim") && edge.target().hasClass("dim"));
      });
    });
  }

  /** Mark the node of the event, the selected one, and the edge over which a gradient goes. */
  mark(focus: number, selected: number, from: number): void {
    this.cy.batch(() => {
      this.marked.removeClass("current chosen flow");
      let marked = this.cy.collection();
      const add = (node: number, name: string) => {
        const shown = this.nodes[this.drawn.boxOf[node]];
        if (shown) marked = marked.union(shown.addClass(name));
      };
      add(focus, "current");
      add(selected, "chosen");
      if (from >= 0 && focus >= 0) {
        const [source, target] = [from, focus].map((node) => this.boxes[this.drawn.boxOf[node]].id);
        marked = marked.union(this.cy.$id(`${source}>${target}`).addClass("flow"));
      }
      this.marked = marked;
    });
  }

  /** Move the view if a node is not well inside of it. */
  lookAt(node: number, quick: boolean): void {
    const { x, y } = this.boxes[this.drawn.boxOf[node]];
    const [width, height, now, pan] = [this.cy.width(), this.cy.height(), this.cy.zoom(), this.cy.pan()];
    const [left, top] = [(x * now + pan.x) / width, (y * now + pan.y) / height];
    if (now > FOLLOWED_ZOOM && left > 0.12 && left < 0.88 && top > 0.15 && top < 0.85) return;
    const goal = this.view(x, y, this.followedZoom());
    if (goal.zoom === now && goal.pan.x === pan.x && goal.pan.y === pan.y) return;
    this.cy.stop();
    if (quick || window.matchMedia("(prefers-reduced-motion: reduce)").matches) this.cy.viewport(goal);
    else this.cy.animate(goal, { duration: 200 });
  }

  /** The zoom for showing a node: the present one, unless it is too small to read. */
  private followedZoom(): number {
    const now = this.cy.zoom();
    return now > FOLLOWED_ZOOM ? now : START_ZOOM;
  }

  /** The whole graph if it can be read then, else its first node. */
  lookAtStart(): void {
    if (!this.boxes.length) return;
    const whole = Math.min(1.2, this.wholeZoom());
    this.cy.viewport(this.view(this.boxes[0].x, this.boxes[0].y, whole < READABLE ? START_ZOOM : whole));
  }

  lookAtAll(): void {
    if (this.boxes.length) this.cy.viewport(this.view(0, 0, Math.min(2, this.wholeZoom())));
  }

  /** The view with a point in the middle, or as near to it as leaves no empty space at a side. */
  private view(x: number, y: number, zoom: number): { zoom: number; pan: { x: number; y: number } } {
    const { x1, x2, y1, y2 } = this.extent;
    const along = (at: number, from: number, to: number, size: number) => {
      const half = size / zoom / 2;
      const middle = to - from < 2 * half ? (from + to) / 2 : Math.min(Math.max(at, from + half), to - half);
      return size / 2 - middle * zoom;
    };
    return { zoom, pan: { x: along(x, x1, x2, this.cy.width()), y: along(y, y1, y2, this.cy.height()) } };
  }

  private wholeZoom(): number {
    const { x1, x2, y1, y2 } = this.extent;
    return Math.max(LEAST_ZOOM, Math.min(this.cy.width() / (x2 - x1), this.cy.height() / (y2 - y1)));
  }
}

/** The extent of the boxes, with space for frames. Cytoscape would measure every label for this. */
function extent({ boxes }: Drawing): { x1: number; x2: number; y1: number; y2: number } {
  let [x1, x2, y1, y2] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of boxes) {
    [x1, x2] = [Math.min(x1, x - 100), Math.max(x2, x + 100)];
    [y1, y2] = [Math.min(y1, y - 50), Math.max(y2, y + 50)];
  }
  return { x1, x2, y1, y2 };
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

/** The variable part of a box's label: the gradients that it waits for, or how many nodes have run. */
function countOf(box: Box, state: State): number {
  if (!box.collapsed) return state.left[box.nodes[0]];
  return box.nodes.reduce((sum, node) => sum + (state.status[node] === Status.Done ? 1 : 0), 0);
}

/** The text in a box; with many boxes only the title, which does not change. */
function labelOf(recording: Recording, box: Box, state: State, many: boolean): string {
  if (box.collapsed) {
    const title = moduleTitle(recording, box.module);
    const done = countOf(box, state);
    const nodes = count(box.nodes.length, "node");
    return many ? title : `${title}\n${done ? `${done} of ${nodes} have run` : nodes}`;
  }
  const number = box.nodes[0];
  const { label, name, shape } = recording.nodes[number];
  const title = label || name.replace(/Backward\d*$/, "");
  if (many) return title;
  const status = state.status[number];
  if (status === Status.Waiting && state.wants[number] > 0) {
    const left = state.left[number];
    return `${title}\n${left ? `waits for ${left} of ${state.wants[number]}` : "has all gradients"}`;
  }
  if (status === Status.Ready) return `${title}\nready`;
  if (status === Status.Running) return `${title}\nruns`;
  return `${title}\n${!shape ? "" : shape.length ? `[${shape.join(", ")}]` : "scalar"}`;
}
