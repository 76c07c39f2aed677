// The graph as it is drawn: with some modules collapsed to one box each.

import type { Recording } from "./format.ts";

export interface Box {
  id: string;
  /** The nodes in the box: one, or the nodes of a collapsed module. */
  nodes: number[];
  module: number;
  /** Set if the box is a collapsed module. */
  collapsed: boolean;
  parent: string | null;
  x: number;
  y: number;
}

export interface Frame {
  id: string;
  module: number;
  parent: string | null;
}

export interface Arrow {
  id: string;
  source: string;
  target: string;
  /** The number of the graph's edges that it represents. */
  edges: number;
}

export interface Drawing {
  boxes: Box[];
  frames: Frame[];
  arrows: Arrow[];
  /** For each node, the place of its box in `boxes`. */
  boxOf: Int32Array;
}

/** Make boxes, frames of modules that are open, and arrows.
 *
 * A module without a name of its own (the root) has no frame: everything is in it. */
export function drawing(recording: Recording, collapsed: ReadonlySet<number>, withFrames = true): Drawing {
  const outermost = recording.modules.map((_, module) => outermostCollapsed(recording, module, collapsed));
  const boxes: Box[] = [];
  const boxOf = new Int32Array(recording.nodes.length);
  const ofModule = new Map<number, number>();
  recording.nodes.forEach((node, number) => {
    const module = node.module >= 0 ? outermost[node.module] : -1;
    let place = module >= 0 ? ofModule.get(module) : undefined;
    if (place === undefined) {
      place = boxes.length;
      if (module >= 0) ofModule.set(module, place);
      boxes.push({
        id: module >= 0 ? `m${module}` : `n${number}`,
        nodes: [],
        module: module >= 0 ? module : node.module,
        collapsed: module >= 0,
        parent: null,
        x: 0,
        y: 0,
      });
    }
    const box = boxes[place];
    box.nodes.push(number);
    box.x += node.x;
    box.y += node.y;
    boxOf[number] = place;
  });
  for (const box of boxes) {
    box.x /= box.nodes.length;
    box.y /= box.nodes.length;
  }
  if (collapsed.size) {
    closeGaps(boxes, "x", WIDEST_GAP);
    closeGaps(boxes, "y", HIGHEST_GAP);
  }
  return { boxes, frames: withFrames ? frames(recording, boxes) : [], arrows: arrows(recording, boxes, boxOf), boxOf };
}

/** The most space between two neighbouring boxes, from middle to middle, once some are gone. */
const WIDEST_GAP = 200;
const HIGHEST_GAP = 110;

/** Move boxes together where nothing is between them. Their order along the axis stays. */
function closeGaps(boxes: Box[], axis: "x" | "y", widest: number): void {
  const order = [...boxes].sort((a, b) => a[axis] - b[axis]);
  let [before, shift] = [order[0]?.[axis] ?? 0, 0];
  for (const box of order) {
    shift += Math.max(0, box[axis] - before - widest);
    before = box[axis];
    box[axis] -= shift;
  }
}

function outermostCollapsed(recording: Recording, module: number, collapsed: ReadonlySet<number>): number {
  let found = -1;
  for (let one = module; one >= 0; one = recording.modules[one].parent) if (collapsed.has(one)) found = one;
  return found;
}

function frames(recording: Recording, boxes: Box[]): Frame[] {
  const found = new Map<number, Frame>();
  const frameOf = (module: number): string | null => {
    if (module < 0 || !recording.modules[module].name) return null;
    let frame = found.get(module);
    if (!frame) {
      frame = { id: `f${module}`, module, parent: null };
      frame.parent = frameOf(recording.modules[module].parent);
      found.set(module, frame);
    }
    return frame.id;
  };
  for (const box of boxes) {
    const module = box.collapsed ? recording.modules[box.module].parent : box.module;
    box.parent = frameOf(module);
  }
  // Parents first, as the graph library requires.
  return [...found.values()].sort((a, b) => a.module - b.module);
}

function arrows(recording: Recording, boxes: Box[], boxOf: Int32Array): Arrow[] {
  const found = new Map<string, Arrow>();
  recording.nodes.forEach((node, number) => {
    for (const [target] of node.edges) {
      if (target < 0 || boxOf[target] === boxOf[number]) continue;
      const [source, goal] = [boxes[boxOf[number]].id, boxes[boxOf[target]].id];
      const id = `${source}>${goal}`;
      const arrow = found.get(id);
      if (arrow) arrow.edges += 1;
      else found.set(id, { id, source, target: goal, edges: 1 });
    }
  });
  return [...found.values()];
}

/** Modules that have nodes, themselves or in modules inside. */
export function modulesWithNodes(recording: Recording): number[] {
  const found = new Set<number>();
  for (const node of recording.nodes) {
    for (let one = node.module; one >= 0 && !found.has(one); one = recording.modules[one].parent) found.add(one);
  }
  return [...found].sort((a, b) => a - b);
}

/** The modules that "collapse all" collapses: the innermost ones that contain others' work,
 * which are the direct children of containers. Here: every named module with the root as its parent. */
export function topModules(recording: Recording): number[] {
  return modulesWithNodes(recording).filter((module) => {
    const { name, parent } = recording.modules[module];
    return name !== "" && (parent < 0 || recording.modules[parent].name === "");
  });
}

export function nodeTitle(recording: Recording, number: number): string {
  const node = recording.nodes[number];
  return node ? node.label || node.name : `node ${number}`;
}

export function moduleTitle(recording: Recording, module: number): string {
  if (module < 0) return "";
  const { name, kind } = recording.modules[module];
  return name ? `${name} (${kind})` : kind;
}
