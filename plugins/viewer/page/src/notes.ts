// "What am I seeing": a sentence about the event itself, and a note on the mechanism behind it.

import type { Event, Recording } from "./format.ts";
import { nodeTitle } from "./graph_model.ts";
import type { State } from "./state.ts";
import { bytes, count, shape } from "./units.ts";

export type Part = "dispatch" | "graph" | "engine" | "memory" | "leaf" | "program";

export interface Concept {
  title: string;
  part: Part;
  text: string;
  /** The article that describes how PyTorch does it. */
  article?: string;
}

const EXECUTED = "How Computational Graphs are Executed in PyTorch";
const CONSTRUCTED = "How Computational Graphs are Constructed in PyTorch";
const DEEP_DIVE = "Deep Dive to PyTorch AutoGrad";
const WALK_THROUGH = "From Python to C/C++ and to GPU: a PyTorch walk-through";

export const CONCEPTS: Record<string, Concept> = {
  start: {
    title: "A recording",
    part: "program",
    text: "Every step of this recording is an event. Play it, or step through it with the arrow keys. The forward pass builds a graph; backward walks it from the loss to the leaves.",
  },
  dispatcher: {
    title: "Dispatcher",
    part: "dispatch",
    text: "An operator has no code of its own. The dispatcher reads the keys of the arguments (their device, whether they need gradients, active transforms) and selects the kernel of the key with the highest priority.",
    article: DEEP_DIVE,
  },
  keys: {
    title: "Dispatch keys",
    part: "dispatch",
    text: "Each layer of the ladder is a key, the highest in the call's key set that has a kernel. The kernel of the Autograd key makes the node, then calls the operator again below itself: a redispatch. The key at the bottom belongs to the backend; its kernel computes the result.",
    article: DEEP_DIVE,
  },
  call_end: {
    title: "The call returns",
    part: "dispatch",
    text: "The result goes up the ladder again. If a node was made, the result's grad_fn is this node.",
    article: WALK_THROUGH,
  },
  raised: {
    title: "The call raises",
    part: "dispatch",
    text: "A kernel or the forward of a custom Function has raised an exception, which goes up the ladder. The call has no result and makes no node.",
    article: WALK_THROUGH,
  },
  node: {
    title: "The graph grows",
    part: "graph",
    text: "A differentiable call adds a node that computes the gradients of its inputs. Its edges (next_functions) lead to the nodes that made the inputs, so the graph points from the loss to the leaves.",
    article: CONSTRUCTED,
  },
  accumulate: {
    title: "AccumulateGrad",
    part: "leaf",
    text: "A leaf is a tensor that was not computed by an operator, such as a parameter. It gets a node without edges: AccumulateGrad, which adds each gradient that arrives to .grad.",
    article: DEEP_DIVE,
  },
  saved: {
    title: "Saved variables",
    part: "memory",
    text: "The derivative needs values of the forward pass: inputs, the result, a mask. The node saves them, with their version, so that a change in place between forward and backward is detected. They keep memory in use until the node has run.",
    article: DEEP_DIVE,
  },
  backward: {
    title: "backward() begins",
    part: "engine",
    text: "A graph task is made for this call: it holds the roots, the dependency counts, and the input buffers of nodes that wait. The gradient of a loss starts with 1.",
    article: EXECUTED,
  },
  reentrant: {
    title: "Reentrant backward",
    part: "engine",
    text: "A running node has called backward() itself, as checkpointing does. The engine makes a graph task inside of the other one and continues the outer task when the inner one has ended.",
    article: EXECUTED,
  },
  dependencies: {
    title: "Dependency counting",
    part: "engine",
    text: "Before anything runs, the engine walks the graph from the roots and counts for each node how many edges lead to it. A node runs only after a gradient has arrived over each of them.",
    article: EXECUTED,
  },
  ready: {
    title: "Ready queue",
    part: "engine",
    text: "A node whose count is zero goes to the ready queue of its device. The node in a queue with the highest sequence number comes first: it was made last in forward. AccumulateGrad has the highest number of all, UINT64_MAX.",
    article: EXECUTED,
  },
  pop: {
    title: "A thread takes a task",
    part: "engine",
    text: "Each device has a thread that takes tasks from its ready queue. Nodes of the CPU run on the thread that called backward().",
    article: EXECUTED,
  },
  capture: {
    title: "A gradient is captured",
    part: "engine",
    text: "grad(inputs=...) requests the gradients of some tensors. The graph task records in exec_info which nodes lead to them, and keeps each gradient among its captured variables. For a leaf this replaces AccumulateGrad, so .grad does not change.",
    article: EXECUTED,
  },
  run: {
    title: "A node runs",
    part: "engine",
    text: "The thread takes the sums from the node's input buffer and calls hooks. Then the node computes the gradients of its inputs from the gradient of its output. The formula calls operators, which go through the dispatcher like all others.",
    article: EXECUTED,
  },
  ran: {
    title: "A node has run",
    part: "engine",
    text: "The gradients that it computed go along its edges to the next nodes.",
    article: EXECUTED,
  },
  buffer: {
    title: "Input buffer",
    part: "engine",
    text: "A gradient waits in the input buffer of the next node until that node is ready. A tensor that was used twice gets two gradients, which are added here.",
    article: EXECUTED,
  },
  count: {
    title: "A count goes down",
    part: "engine",
    text: "The node waits for one gradient less. At zero, it is pushed to a ready queue.",
    article: EXECUTED,
  },
  hook: {
    title: "Hook",
    part: "engine",
    text: "A function of the program that the engine calls: before a node runs, after it, on a tensor's gradient, or after a leaf has accumulated. It may read gradients or replace them.",
    article: EXECUTED,
  },
  free: {
    title: "Saved variables are released",
    part: "memory",
    text: "After a node has run, its saved variables are released, unless retain_graph=True. So memory falls during backward, and a second backward through the same graph is an error.",
    article: EXECUTED,
  },
  grad: {
    title: "A gradient arrives",
    part: "leaf",
    text: "AccumulateGrad sets .grad, or adds to it. This is where backward ends for this parameter.",
    article: EXECUTED,
  },
  backward_end: {
    title: "backward() ends",
    part: "engine",
    text: "All tasks of this graph task have ended. The call returns.",
    article: EXECUTED,
  },
  memory: {
    title: "Memory",
    part: "memory",
    text: "Bytes of arrays that are alive on a device: parameters, activations, gradients.",
  },
  optimizer: {
    title: "Optimizer step",
    part: "program",
    text: "The optimizer reads .grad of each parameter and changes the parameter, in place and without a graph.",
  },
};

export interface Note {
  sentence: string;
  concept: Concept;
}

/** The note about the event at the replay's position. `state` is the state after the event. */
export function note(recording: Recording, state: State): Note {
  const event = recording.events[state.at - 1];
  if (!event) return { sentence: "Before the first event.", concept: CONCEPTS.start };
  return { sentence: sentence(recording, state, event), concept: CONCEPTS[conceptOf(recording, state, event)] };
}

function conceptOf(recording: Recording, state: State, event: Event): string {
  switch (event.k) {
    case "call":
      return "dispatcher";
    case "step":
      return "keys";
    case "end":
      return recording.calls[event.c].raised ? "raised" : "call_end";
    case "save":
      return "saved";
    case "node":
      return recording.nodes[event.n]?.kind === "leaf" ? "accumulate" : "node";
    case "backward":
      return state.backwards.length > 1 ? "reentrant" : "backward";
    default:
      return event.k;
  }
}

function sentence(recording: Recording, state: State, event: Event): string {
  const title = "n" in event ? nodeTitle(recording, event.n) : "";
  const thread = recording.threads[event.th]?.name ?? `thread ${event.th}`;
  switch (event.k) {
    case "call":
      return `${recording.calls[event.c].op} is called on ${thread}.`;
    case "step": {
      const step = recording.calls[event.c].steps[event.s];
      if (!step) return `${recording.calls[event.c].op} enters a dispatch key.`;
      const inside = step.depth ? `, ${count(step.depth, "redispatch", "redispatches")} deep` : "";
      return `${recording.calls[event.c].op} enters ${step.key}${inside}: ${step.kernel || "fall through"}.`;
    }
    case "end": {
      const { op, outputs, raised } = recording.calls[event.c];
      if (raised) return `${op} raises.`;
      const result = outputs[0]?.shape ? ` a tensor of ${shape(outputs[0].shape)}` : "";
      return `${op} returns${result}.`;
    }
    case "node": {
      const node = recording.nodes[event.n];
      if (node.kind === "leaf") return `${title} gets its AccumulateGrad node.`;
      const to = node.edges.filter(([target]) => target >= 0).length;
      return `${title} joins the graph, with ${count(to, "edge")}.`;
    }
    case "save":
      return `${title} saves ${bytes(event.bytes)} for backward.`;
    case "backward":
      return `backward() starts from ${event.roots.map((root) => nodeTitle(recording, root)).join(", ")}.`;
    case "dependencies":
      return `The engine counts the gradients that ${count(event.counts.length, "node")} will wait for.`;
    case "ready":
      return `${title} goes to the ready queue ${event.q}.`;
    case "pop":
      return `${thread} takes ${title} from the queue ${event.q}.`;
    case "capture":
      return `grad() captures the gradient of input ${event.i} of ${title}, ${bytes(event.bytes)}.`;
    case "run":
      return `${title} runs on ${thread}.`;
    case "ran":
      return `${title} has run, in ${time(state, event.n)}.`;
    case "buffer":
      return event.sum
        ? `Another gradient for ${title} is added in its input ${event.i}.`
        : `A gradient of ${bytes(event.bytes)} waits in input ${event.i} of ${title}.`;
    case "count":
      return event.left
        ? `${title} waits for ${count(event.left, "more gradient")}.`
        : `${title} has all its gradients.`;
    case "hook":
      return `A ${event.what} hook is called on ${title}: ${event.name}.`;
    case "free":
      return `${title} releases ${bytes(event.bytes)}.`;
    case "grad":
      return `${event.label || title} has its gradient, ${bytes(event.bytes)}.`;
    case "backward_end":
      return "backward() returns.";
    case "memory":
      return `${bytes(event.bytes)} are in use on ${event.device}.`;
    case "optimizer":
      return `${event.name} changes the parameters.`;
  }
}

function time(state: State, node: number): string {
  const us = state.time - state.started[node];
  return us < 1000 ? `${us.toFixed(us < 10 ? 1 : 0)} µs` : `${(us / 1000).toFixed(2)} ms`;
}
