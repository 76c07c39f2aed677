import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event, GraphNode, Recording } from "../src/format.ts";
import { drawing, topModules } from "../src/graph_model.ts";
import { bars, lanes, memory, SAVED, thinned } from "../src/lanes.ts";
import { note } from "../src/notes.ts";
import { atTime, eventsOfNodes, jumpTarget, Replay, stepFrom } from "../src/replay.ts";
import { search } from "../src/search.ts";
import { State, Status } from "../src/state.ts";

type Without<T> = T extends unknown ? Omit<T, "t" | "th"> : never;

function node(name: string, module: number, edges: [number, number][], more: Partial<GraphNode> = {}): GraphNode {
  return { name, call: -1, module, kind: "function", label: "", shape: [2], edges, saved: [], x: 0, y: 0, ...more };
}

/** x -> exp -> sum, x used twice by a product: exp's output has one consumer, x two. */
function small(): Recording {
  const events: Without<Event>[] = [
    { k: "call", c: 0 },
    { k: "step", c: 0, s: 0 },
    { k: "node", n: 0 },
    { k: "node", n: 1 },
    { k: "save", n: 1, bytes: 100 },
    { k: "end", c: 0 },
    { k: "node", n: 2 },
    { k: "backward", roots: [2], b: 0 },
    { k: "dependencies", counts: [[0, 2], [1, 1]] },
    { k: "ready", n: 2, q: "cpu" },
    { k: "pop", n: 2, q: "cpu" },
    { k: "run", n: 2 },
    { k: "ran", n: 2 },
    { k: "buffer", n: 1, i: 0, bytes: 8, sum: false },
    { k: "count", n: 1, left: 0 },
    { k: "buffer", n: 0, i: 0, bytes: 8, sum: false },
    { k: "count", n: 0, left: 1 },
    { k: "ready", n: 1, q: "cpu" },
    { k: "pop", n: 1, q: "cpu" },
    { k: "run", n: 1 },
    { k: "free", n: 1, bytes: 100 },
    { k: "ran", n: 1 },
    { k: "buffer", n: 0, i: 0, bytes: 8, sum: true },
    { k: "count", n: 0, left: 0 },
    { k: "ready", n: 0, q: "cpu" },
    { k: "pop", n: 0, q: "cpu" },
    { k: "run", n: 0 },
    { k: "grad", n: 0, label: "x", bytes: 8 },
    { k: "ran", n: 0 },
    { k: "backward_end", b: 0 },
  ];
  return {
    version: 1,
    about: { title: "small" },
    sources: [],
    modules: [
      { name: "", kind: "Net", parent: -1 },
      { name: "a", kind: "Exp", parent: 0 },
      { name: "a.b", kind: "Part", parent: 1 },
    ],
    threads: [{ name: "MainThread" }],
    calls: [
      { op: "exp", source: null, module: 1, thread: 0, start: 0, end: 5, parent: -1, inputs: [], outputs: [], steps: [], node: 1 },
    ],
    nodes: [
      node("AccumulateGrad", 2, [], { kind: "leaf", label: "x", y: 10 }),
      node("ExpBackward0", 1, [[0, 0]], { y: 30 }),
      node("MulBackward0", 0, [[1, 0], [0, 0]], { y: 60 }),
    ],
    events: events.map((event, place) => ({ ...event, t: 10 * place, th: 0 }) as Event),
  };
}

/** The state by applying every event from the start: what any seek has to equal. */
function naive(recording: Recording, at: number): State {
  const state = new State(recording.nodes.length);
  for (const event of recording.events.slice(0, at)) state.apply(event);
  return state;
}

/** The small recording again and again, long enough for many snapshots. */
function long(rounds: number): Recording {
  const recording = small();
  const events = recording.events;
  recording.events = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const event of events) recording.events.push({ ...event, t: recording.events.length });
  }
  return recording;
}

test("a seek anywhere, in any order, gives the state of all events before it", () => {
  const recording = long(60);
  const replay = new Replay(recording);
  let place = 7;
  for (let round = 0; round < 400; round += 1) {
    place = (place * 7919 + 104729) % (recording.events.length + 1);
    assert.deepEqual(replay.seek(place), naive(recording, place));
  }
});

test("seeking stays within the recording", () => {
  const replay = new Replay(small());
  assert.equal(replay.seek(-5).at, 0);
  assert.equal(replay.seek(1e9).at, replay.length);
});

test("a node goes from made over waiting, ready and running to done", () => {
  const recording = small();
  const replay = new Replay(recording);
  const path = [0, 4, 9, 18, 20, 22].map((at) => replay.seek(at).status[1]);
  assert.deepEqual(path, [Status.Absent, Status.Made, Status.Waiting, Status.Ready, Status.Running, Status.Done]);
});

test("counts go down, and gradients of one input add up in the buffer", () => {
  const replay = new Replay(small());
  assert.equal(replay.seek(9).left[0], 2);
  assert.equal(replay.seek(17).left[0], 1);
  assert.equal(replay.seek(23).buffers.get(0)?.get(0)?.added, 2);
  assert.equal(replay.seek(27).buffers.has(0), false);
});

test("a queue has what is ready and not taken", () => {
  const replay = new Replay(small());
  assert.deepEqual(replay.seek(18).queues.get("cpu"), [1]);
  assert.deepEqual(replay.seek(19).queues.get("cpu"), []);
});

test("saved bytes are released, gradients arrive", () => {
  const replay = new Replay(small());
  assert.equal(replay.seek(5).savedBytes, 100);
  assert.equal(replay.seek(21).savedBytes, 0);
  assert.deepEqual([...replay.seek(30).arrived.values()].map((one) => one.label), ["x"]);
  assert.equal(replay.seek(30).backwards.length, 0);
});

test("a graph alone has all its nodes and what they save", () => {
  const recording = small();
  recording.events = [];
  recording.nodes[1].saved = [{ name: "result", shape: [2], dtype: "float32", bytes: 8 }];
  const { state } = new Replay(recording);
  assert.equal(state.nodes, 3);
  assert.equal(state.savedBytes, 8);
});

test("steps with a filter visit the events of the module and of those inside", () => {
  const recording = small();
  const visited: string[] = [];
  for (let at = stepFrom(recording, 0, 1, 2); at < recording.events.length; at = stepFrom(recording, at, 1, 2)) {
    const event = recording.events[at - 1];
    visited.push(event.k);
    assert.equal("n" in event && event.n, 0);
  }
  assert.equal(visited[0], "node");
  assert.equal(visited.at(-1), "ran");
  assert.equal(stepFrom(recording, 3, -1, 2), 0);
  assert.equal(stepFrom(recording, 5, -1, 1), 4);
});

test("large steps go to what begins", () => {
  const recording = small();
  assert.equal(stepFrom(recording, 1, 1, -1, true), 8);
  assert.equal(stepFrom(recording, 9, 1, -1, true), 12);
});

test("a jump goes to where the node runs, else to where it joins", () => {
  const recording = small();
  assert.equal(jumpTarget(recording, eventsOfNodes(recording)[0]), 27);
  recording.events = recording.events.slice(0, 8);
  assert.equal(jumpTarget(recording, eventsOfNodes(recording)[0]), 3);
});

test("a time is found among the events", () => {
  const recording = small();
  assert.deepEqual([-1, 0, 15, 1e9].map((time) => atTime(recording, time)), [0, 1, 2, 30]);
});

test("a collapsed module is one box, with the edges that leave it", () => {
  const recording = small();
  const open = drawing(recording, new Set());
  assert.deepEqual(open.boxes.map((box) => box.parent), ["f2", "f1", null]);
  assert.deepEqual(open.frames.map((frame) => [frame.id, frame.parent]), [["f1", null], ["f2", "f1"]]);
  assert.equal(open.arrows.length, 3);
  const shut = drawing(recording, new Set([1, 2]));
  assert.deepEqual(shut.boxes.map((box) => box.id), ["m1", "n2"]);
  assert.deepEqual(shut.arrows, [{ id: "n2>m1", source: "n2", target: "m1", edges: 2 }]);
  assert.equal(shut.boxes[0].y, 20);
  assert.deepEqual(topModules(recording), [1]);
});

test("what collapses leaves no gap, and the order stays", () => {
  const recording = small();
  recording.nodes[0].y = -5000;
  recording.nodes[1].y = -4000;
  recording.nodes[2].y = 3000;
  const open = drawing(recording, new Set());
  assert.deepEqual(open.boxes.map((box) => box.y), [-5000, -4000, 3000]);
  const { boxes } = drawing(recording, new Set([2]));
  assert.deepEqual(boxes.map((box) => box.y), [-5000, -4890, -4780]);
});

test("search ranks names before modules, and knows numbers", () => {
  const recording = small();
  assert.deepEqual(search(recording, "x"), [0, 1]);
  assert.deepEqual(search(recording, "mul backward"), [2]);
  assert.deepEqual(search(recording, "#1"), [1]);
  assert.deepEqual(search(recording, "nothing"), []);
});

test("lanes nest what runs inside of others, and narrow bars are joined", () => {
  const recording = small();
  const [lane] = lanes(recording);
  assert.deepEqual(lane.spans.map((span) => [span.kind, span.start, span.end]), [
    ["call", 0, 50],
    ["run", 110, 120],
    ["run", 190, 210],
    ["run", 260, 280],
  ]);
  assert.equal(bars(lane, 0, 290, 290).length, 4);
  assert.deepEqual(bars(lane, 0, 290, 1).map((bar) => [bar.kind, bar.spans]), [["call", 1], ["run", 3]]);
});

test("the memory lane has saved bytes, and thinning keeps the peak", () => {
  const [level] = memory(small());
  assert.equal(level.name, SAVED);
  assert.equal(level.peak, 100);
  assert.deepEqual(thinned([[0, 1], [1, 9], [2, 3]], 0, 100, 10), [[0, 9], [100, 9]]);
});

test("a captured gradient leaves the input buffer and is counted", () => {
  const recording = small();
  recording.events.splice(26, 3, { t: 260, th: 0, k: "capture", n: 0, i: 0, bytes: 8 });
  const replay = new Replay(recording);
  assert.equal(replay.seek(26).captured.has(0), false);
  const state = replay.seek(27);
  assert.equal(state.captured.get(0), 1);
  assert.equal(state.buffers.has(0), false);
  assert.equal(state.status[0], Status.Made);
  assert.equal(state.arrived.size, 0);
  const { sentence, concept } = note(recording, state);
  assert.equal(sentence, "grad() captures the gradient of input 0 of x, 8 B.");
  assert.match(concept.text, /exec_info/);
});

test("a call that raised does not return", () => {
  const recording = small();
  const replay = new Replay(recording);
  assert.equal(note(recording, replay.seek(6)).sentence, "exp returns.");
  recording.calls[0].raised = true;
  const { sentence, concept } = note(recording, replay.seek(6));
  assert.equal(sentence, "exp raises.");
  assert.equal(concept.title, "The call raises");
});

test("every event has a sentence and a concept", () => {
  const recording = small();
  const replay = new Replay(recording);
  for (let at = 0; at <= replay.length; at += 1) {
    const { sentence, concept } = note(recording, replay.seek(at));
    assert.match(sentence, /^[^{}]+\.$/);
    assert.ok(concept.text, `no concept at ${at}`);
  }
  assert.match(note(recording, replay.seek(23)).sentence, /added in its input 0/);
});
