// A call's way through the dispatch keys: one rung for each key, from the highest to the backend.

import { nodeTitle, moduleTitle } from "../graph_model.ts";
import { shape, time } from "../units.ts";
import type { Call, TensorNote } from "../format.ts";
import type { Session } from "./session.ts";
import { Panel } from "./panel.tsx";

/** The call that is shown, and which of its steps is reached; 1e9 when it has returned. */
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
          <ol class="ladder" aria-label="Dispatch keys, from the highest">
            {call.steps.map((one, place) => {
              const reached = place < step ? "past" : place === step ? "here" : "to-come";
              return (
                <li class={`rung ${past ? "faded" : reached}`} aria-current={reached === "here" ? "step" : undefined} style={{ "--depth": Math.min(one.depth, 6) }}>
                  <span class="key">{one.key}</span>
                  <span class="kernel">{one.kernel}</span>
                  <span class="time">{time(one.end - one.start)}</span>
                </li>
              );
            })}
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

function parents({ recording }: Session, number: number): string {
  const names: string[] = [];
  for (let one = recording.calls[number].parent; one >= 0; one = recording.calls[one].parent) {
    names.unshift(recording.calls[one].op);
  }
  return names.length ? `inside ${names.join(" › ")}` : "";
}
