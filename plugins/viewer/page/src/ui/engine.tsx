// The engine: threads, ready queues, nodes that wait for gradients, and gradients at leaves.

import { nodeTitle } from "../graph_model.ts";
import { Status } from "../state.ts";
import { bytes, count } from "../units.ts";
import type { Session } from "./session.ts";
import { Panel } from "./panel.tsx";

const MOST_CHIPS = 8;
const MOST_ROWS = 8;

export function Engine({ session }: { session: Session }) {
  return (
    <>
      <Panel title="Engine" name="engine" extra={<Depth session={session} />}>
        <Progress session={session} />
        <Threads session={session} />
        <Queues session={session} />
        <Waiting session={session} />
      </Panel>
      <Leaves session={session} />
    </>
  );
}

function Chip({ session, node, kind = "" }: { session: Session; node: number; kind?: string }) {
  return (
    <button type="button" class={`chip ${kind}`} onClick={() => session.select(node)}>
      {nodeTitle(session.recording, node)}
    </button>
  );
}

function Depth({ session }: { session: Session }) {
  const depth = session.state.backwards.length;
  if (!depth) return <span class="tag">not running</span>;
  return <span class="tag engine">{depth > 1 ? `backward, ${depth} deep` : "backward"}</span>;
}

function Progress({ session: { state } }: { session: Session }) {
  const memory = [...state.memory].map(([device, size]) => `${bytes(size)} on ${device}`).join(", ");
  return (
    <dl class="figures">
      <div>
        <dt>in the graph</dt>
        <dd>{state.nodes}</dd>
      </div>
      <div>
        <dt>have run</dt>
        <dd>{state.done}</dd>
      </div>
      <div>
        <dt>saved</dt>
        <dd>{bytes(state.savedBytes)}</dd>
      </div>
      <div>
        <dt>memory</dt>
        <dd>{memory || "–"}</dd>
      </div>
    </dl>
  );
}

function Threads({ session }: { session: Session }) {
  const { recording, state } = session;
  return (
    <div class="group">
      <h3>Threads</h3>
      <ul class="rows">
        {recording.threads.map((thread, place) => {
          const nodes = state.running.get(place) ?? [];
          const call = state.calls.get(place)?.at(-1);
          return (
            <li class="row">
              <span class="row-name">{thread.name}</span>
              <span class="row-body">
                {nodes.map((node) => (
                  <Chip session={session} node={node} kind="running" />
                ))}
                {call && <span class="chip calling">{recording.calls[call.call].op}</span>}
                {!nodes.length && !call && <span class="idle">idle</span>}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Queues({ session }: { session: Session }) {
  const queues = [...session.state.queues];
  return (
    <div class="group">
      <h3>Ready queues</h3>
      {!queues.length && <p class="empty">Backward has not begun.</p>}
      <ul class="rows">
        {queues.map(([name, nodes]) => (
          <li class="row">
            <span class="row-name">{name}</span>
            <span class="row-body" data-testid="queue">
              {nodes.slice(0, MOST_CHIPS).map((node) => (
                <Chip session={session} node={node} kind="ready" />
              ))}
              {nodes.length > MOST_CHIPS && <span class="idle">and {nodes.length - MOST_CHIPS} more</span>}
              {!nodes.length && <span class="idle">empty</span>}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Nodes with gradients in their input buffers that wait for more, the last changed one first. */
function Waiting({ session }: { session: Session }) {
  const { recording, state } = session;
  const filling = [...state.buffers].reverse();
  return (
    <div class="group">
      <h3>Input buffers and dependency counts</h3>
      {!filling.length && <p class="empty">No gradients are waiting.</p>}
      <ul class="rows">
        {filling.slice(0, MOST_ROWS).map(([node, inputs]) => {
          const wants = Math.max(state.wants[node], 1);
          const left = Math.max(state.left[node], 0);
          const size = [...inputs.values()].reduce((sum, one) => sum + one.bytes, 0);
          const added = [...inputs.values()].some((one) => one.added > 1);
          return (
            <li class="row buffer">
              <Chip session={session} node={node} kind={state.status[node] === Status.Ready ? "ready" : "waiting"} />
              <span class="meter" role="img" aria-label={`${wants - left} of ${wants} gradients have arrived`}>
                <span style={{ width: `${(100 * (wants - left)) / wants}%` }} />
              </span>
              <span class="amount">
                {left ? `waits for ${left}` : "complete"} · {bytes(size)}
                {added && " · summed"}
              </span>
            </li>
          );
        })}
      </ul>
      {filling.length > MOST_ROWS && <p class="empty">and {filling.length - MOST_ROWS} more</p>}
      {recording.nodes.length > 0 && state.backwards.length > 0 && (
        <p class="empty">{count(waiting(state.status), "node waits", "nodes wait")} for a gradient.</p>
      )}
    </div>
  );
}

function waiting(status: Uint8Array): number {
  let found = 0;
  for (const one of status) if (one === Status.Waiting) found += 1;
  return found;
}

function Leaves({ session }: { session: Session }) {
  const { recording, state } = session;
  const leaves = recording.nodes.filter((node) => node.kind === "leaf").length;
  const arrived = [...state.arrived.values()].reverse();
  return (
    <Panel title="Gradients at leaves" name="leaves" extra={<span class="tag leaf">{`${arrived.length} of ${leaves}`}</span>}>
      {!arrived.length && <p class="empty">None has arrived.</p>}
      <ul class="rows">
        {arrived.slice(0, 60).map(({ node, label, bytes: size, times, at }) => (
          <li class={at === state.at ? "row new" : "row"}>
            <button type="button" class="chip leaf" onClick={() => session.select(node)}>
              {label || nodeTitle(recording, node)}
            </button>
            <span class="amount">
              {bytes(size)}
              {times > 1 && ` · ${times} times`}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
