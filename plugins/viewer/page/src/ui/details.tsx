// Everything about the node that was clicked.

import type { GraphNode } from "../format.ts";
import { moduleTitle, nodeTitle } from "../graph_model.ts";
import { Status } from "../state.ts";
import { bytes, count, shape, time } from "../units.ts";
import type { Session } from "./session.ts";
import { Icon } from "./icons.tsx";
import { tensors } from "./ladder.tsx";

const STATUS: Record<number, string> = {
  [Status.Absent]: "not made yet",
  [Status.Made]: "in the graph",
  [Status.Waiting]: "waits for gradients",
  [Status.Ready]: "in a ready queue",
  [Status.Running]: "runs",
  [Status.Done]: "has run",
};
const MOST = 12;
const EVENT_NAMES: Record<string, string> = {
  node: "joins the graph",
  save: "saves tensors",
  backward: "backward begins here",
  ready: "pushed to a queue",
  pop: "taken from the queue",
  capture: "gradient captured",
  run: "runs",
  ran: "has run",
  buffer: "a gradient comes",
  count: "count goes down",
  hook: "hook",
  free: "saved tensors released",
  grad: "gradient arrives",
};

export function Details({ session }: { session: Session }) {
  const { recording, state, selected } = session;
  const node = recording.nodes[selected];
  if (!node) return null;
  const call = recording.calls[node.call];
  const hooks = session.places[selected].map((place) => recording.events[place - 1]).filter((event) => event.k === "hook");
  const consumers: number[] = [];
  recording.nodes.forEach((one, number) => {
    if (consumers.length <= MOST && one.edges.some(([target]) => target === selected)) consumers.push(number);
  });
  const line = call?.source;
  return (
    <aside class="details" aria-label={`Node ${nodeTitle(recording, selected)}`} data-testid="details">
      <div class="panel-head">
        <h2>{nodeTitle(recording, selected)}</h2>
        <button type="button" class="tool" onClick={() => session.select(-1)} aria-label="Close details" title="Close (Esc)">
          <Icon name="close" />
        </button>
      </div>
      <div class="panel-body">
        <dl class="facts">
          <Fact name="Node" value={`${node.name} · #${selected}`} />
          {recording.events.length > 0 && <Fact name="Now" value={STATUS[state.status[selected]]} />}
          {state.wants[selected] > 0 && <Fact name="Waits for" value={`${Math.max(state.left[selected], 0)} of ${count(state.wants[selected], "gradient")}`} />}
          {state.captured.has(selected) && <Fact name="Captured" value={captured(node, state.captured.get(selected) ?? 0)} />}
          {state.used[selected] > 0 && <Fact name="Time" value={time(state.used[selected])} />}
          <Fact name="Sequence number" value={sequence(node)} />
          <Fact name="Module" value={moduleTitle(recording, node.module)} />
          <Fact name="Shape" value={shape(node.shape)} />
          {call && <Fact name="Made by" value={`${call.op}(${tensors(call.inputs)})`} />}
          {line && <Fact name="Line" value={`${(recording.sources[line[0]]?.file ?? "").split(/[\\/]/).at(-1)}:${line[1]}`} />}
        </dl>
        <h3>Saved tensors</h3>
        {!node.saved.length && <p class="empty">It saves none.</p>}
        {node.saved.length > 0 && (
          <table class="saved">
            <tbody>
              {node.saved.map((one) => (
                <tr>
                  <th scope="row">{one.name}</th>
                  <td>{shape(one.shape)}</td>
                  <td>{one.dtype}</td>
                  {one.version !== undefined && (
                    <td title="Version counter when it was saved: a change in place since then is an error in backward">version {one.version}</td>
                  )}
                  <td class="amount">{bytes(one.bytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {node.saved.length > 0 && recording.events.length > 0 && (
          <p class="empty">{state.saved[selected] > 0 ? `${bytes(state.saved[selected])} held now` : state.status[selected] === Status.Done ? "released" : "not held now"}</p>
        )}
        <h3>Edges (next_functions)</h3>
        <Links session={session} nodes={node.edges.map(([target]) => target)} none="None: this is where gradients end." />
        <h3>Gets gradients from</h3>
        <Links session={session} nodes={consumers} none="No node: this is a root." />
        {hooks.length > 0 && (
          <>
            <h3>Hooks</h3>
            <ul class="plain">
              {hooks.map((event) => (
                <li>{`${event.what}: ${event.name}${event.us === undefined ? "" : `, ${time(event.us)}`}`}</li>
              ))}
            </ul>
          </>
        )}
        {session.places[selected].length > 0 && (
          <>
            <h3>Events</h3>
            <ol class="moments">
              {session.places[selected].slice(0, 60).map((place) => {
                const event = recording.events[place - 1];
                return (
                  <li>
                    <button type="button" class={place === session.at ? "link here" : "link"} onClick={() => session.seek(place)}>
                      {place}
                    </button>{" "}
                    {EVENT_NAMES[event.k] ?? event.k} <span class="time">{time(event.t)}</span>
                  </li>
                );
              })}
            </ol>
          </>
        )}
      </div>
    </aside>
  );
}

/** Its place among the nodes that are ready together. */
function sequence({ kind, sequence: number }: GraphNode): string {
  if (number === undefined || (number < 0 && kind !== "leaf")) return "";
  return number < 0 ? "UINT64_MAX: before all others in a ready queue" : `${number}`;
}

function captured({ kind }: GraphNode, times: number): string {
  const what = `${count(times, "gradient")} for grad(inputs=...)`;
  return kind === "leaf" ? `${what}, not added to .grad` : what;
}

function Fact({ name, value }: { name: string; value: string }) {
  if (!value) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Links({ session, nodes, none }: { session: Session; nodes: number[]; none: string }) {
  const there = nodes.filter((node) => node >= 0);
  if (!there.length) return <p class="empty">{none}</p>;
  return (
    <ul class="links">
      {there.slice(0, MOST).map((node) => (
        <li>
          <button type="button" class={`chip ${session.recording.nodes[node].kind === "leaf" ? "leaf" : ""}`} onClick={() => session.select(node)}>
            {nodeTitle(session.recording, node)}
          </button>
        </li>
      ))}
      {there.length > MOST && <li class="idle">and more</li>}
    </ul>
  );
}
