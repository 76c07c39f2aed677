// A call's way through the dispatch keys: one rung for each key, from the highest to the backend.

import { nodeTitle, moduleTitle } from "../graph_model.ts";
import { shape, time } from "../units.ts";
import type { Call, TensorNote } from "../format.ts";
import type { Session } from "./session.ts";
import { Panel } from "./panel.tsx";

/** The call that is shown, and the step that it has reached; 1e9 after it has returned. */
function shown({ recording, state, at }: Session): { call: number; step: number; past: boolean } {
  const event = recording.events[at - 1];
  if (!event) return { call: -1, step: -1, past: false };
  const open = state.calls.get(event.th)?.at(-1);
  if (open && !("n" in event && recording.nodes[event.n]?.call !== open.call && state.backwards.length)) {
    return { ...open, past: false };
  }
  if ("c" in event) return { call: event.c, step: 1e9, past: false };
  const made = "n" in event ? (recording.nodes[event.n]?.call ?? -1) : -1;
  return { call: made >= 0 ? made : state.lastCall, step: 1e9, past: true };
}

export function tensors(notes: TensorNote[]): string {
  return notes.map(({ name, shape: sizes }) => `${name || ""}${sizes ? `[${sizes.join(", ")}]` : ""}`).join(", ");
}

/** The dtypes of a call's tensors and where they are, each once. */
function kinds(call: Call): string {
  const all = [...call.inputs, ...call.outputs];
  return [...new Set([...all.map((one) => one.dtype), ...all.map((one) => one.device)])].filter(Boolean).join(", ");
}

export function Ladder({ session }: { session: Session }) {
  const { recording } = session;
  const { call: number, step, past } = shown(session);
  const call = recording.calls[number];
  const keys = keyset(session, number, step);
  return (
    <Panel title="Dispatch" name="dispatch" extra={call && past && <span class="tag">earlier call</span>}>
      {!call && <p class="empty">No operator has been called yet.</p>}
      {call && (
        <>
          <p class="signature">
            <strong>{call.op}</strong>({tensors(call.inputs)}){call.outputs.length > 0 && ` → ${tensors(call.outputs)}`}
          </p>
          <p class="where">
            {[
              parents(session, number),
              call.module >= 0 && recording.modules[call.module].name ? `in ${moduleTitle(recording, call.module)}` : "",
              `on ${recording.threads[call.thread]?.name ?? call.thread}`,
              kinds(call),
              time(call.end - call.start),
            ]
              .filter(Boolean)
              .join(" · ")}
          </p>
          {keys.length > 0 && (
            <p class="where" data-testid="keyset" title="The keys of the arguments and of the modes that are on, the highest first">
              DispatchKeySet({keys.join(", ")})
            </p>
          )}
          <ol class="ladder" aria-label="Dispatch keys, from the highest">
            {rungs(session, number, step, past).map(({ op, key, kernel, took, depth, reached }) => (
              <li class={`rung ${reached}`} aria-current={reached === "here" ? "step" : undefined} style={{ "--depth": depth }}>
                <span class="key">
                  {op && <span class="of">{op}</span>} {key}
                </span>
                <span class="kernel">{kernel}</span>
                <span class="time">{time(took)}</span>
              </li>
            ))}
          </ol>
          {call.node >= 0 && (
            <p class="made">
              makes{" "}
              <button type="button" class="link" onClick={() => session.select(call.node)}>
                {nodeTitle(recording, call.node)}
              </button>
              {recording.nodes[call.node].shape && ` of ${shape(recording.nodes[call.node].shape)}`}
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

/** The keys of the step at which a call is, or else of the call itself. */
function keyset({ recording }: Session, number: number, step: number): string[] {
  const steps = recording.calls[number]?.steps ?? [];
  return recording.keysets?.[(steps[step] ?? steps[0])?.keyset ?? -1] ?? [];
}

interface Rung {
  /** The operator, where another one begins. */
  op: string;
  key: string;
  kernel: string;
  took: number;
  depth: number;
  reached: "past" | "here" | "around" | "to-come" | "faded";
}

const DEEPEST = 8;

/** The steps of a call, below the steps of the calls around it. */
function rungs({ recording, state }: Session, number: number, step: number, past: boolean): Rung[] {
  const chain: number[] = [];
  for (let one = number; one >= 0; one = recording.calls[one].parent) chain.unshift(one);
  const open = state.calls.get(recording.calls[number].thread) ?? [];
  const found: Rung[] = [];
  let offset = 0;
  for (const one of chain) {
    const { op, steps } = recording.calls[one];
    const inner = one === number;
    // For an enclosing call, only the step that it has reached is active.
    const until = inner ? steps.length : (open.find((entry) => entry.call === one)?.step ?? steps.length - 1) + 1;
    steps.slice(0, until).forEach(({ key, kernel, start, end, depth }, place) => {
      const now = inner ? (place < step ? "past" : place === step ? "here" : "to-come") : "around";
      found.push({
        ...{ key, kernel, took: end - start },
        op: place === 0 && chain.length > 1 ? op : "",
        depth: Math.min(offset + depth, DEEPEST),
        reached: past ? "faded" : now,
      });
    });
    offset += until ? steps[until - 1].depth + 1 : 0;
  }
  return found;
}

function parents({ recording }: Session, number: number): string {
  const names: string[] = [];
  for (let one = recording.calls[number].parent; one >= 0; one = recording.calls[one].parent) {
    names.unshift(recording.calls[one].op);
  }
  return names.length ? `inside ${names.join(" › ")}` : "";
}
