// The lines of the program that were run, with the line of the current call marked.

import { useEffect, useRef } from "preact/hooks";
import type { Session } from "./session.ts";
import { Panel } from "./panel.tsx";

/** Which line is current: of the call that runs, or of the call that made the node that runs. */
function current(session: Session): { source: [number, number] | null; made: boolean } {
  const { recording, state, at } = session;
  const event = recording.events[at - 1];
  if (!event) return { source: null, made: false };
  if ("n" in event) {
    let call = recording.nodes[event.n]?.call ?? -1;
    // A leaf was made by no call: its gradient comes from the node that ran last.
    if (call < 0 && state.backwards.length) call = recording.nodes[state.lastRun]?.call ?? -1;
    if (call >= 0) return { source: sourceOf(session, call), made: state.backwards.length > 0 };
  }
  const running = state.running.get(event.th)?.at(-1);
  if (running !== undefined) {
    const call = recording.nodes[running]?.call ?? -1;
    return { source: call >= 0 ? sourceOf(session, call) : null, made: true };
  }
  if ("c" in event) return { source: sourceOf(session, event.c), made: false };
  return { source: state.lastCall >= 0 ? sourceOf(session, state.lastCall) : null, made: false };
}

function sourceOf({ recording }: Session, call: number): [number, number] | null {
  for (let one = call; one >= 0; one = recording.calls[one].parent) {
    if (recording.calls[one].source) return recording.calls[one].source;
  }
  return null;
}

/** Lines without the indentation that all of them have. */
function dedented(lines: string[]): string[] {
  const depths = lines.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length);
  const common = depths.length ? Math.min(...depths) : 0;
  return lines.map((line) => line.slice(common));
}

export function Program({ session }: { session: Session }) {
  const { source, made } = current(session);
  const marked = useRef<HTMLLIElement>(null);
  const key = source ? `${source[0]}:${source[1]}` : "";
  useEffect(() => {
    const line = marked.current;
    const box = line?.closest<HTMLElement>(".panel-body");
    if (!line || !box) return;
    const [from, to] = [box.getBoundingClientRect(), line.getBoundingClientRect()];
    if (to.top < from.top + 20 || to.bottom > from.bottom - 20) {
      box.scrollTop += to.top - from.top - box.clientHeight / 2;
    }
  }, [key]);
  const { sources } = session.recording;
  return (
    <Panel title="Program" name="program" extra={made && source && <span class="tag engine">differentiated now</span>}>
      {!sources.length && <p class="empty">No source lines were recorded.</p>}
      {sources.map((stretch, place) => (
        <div class="source">
          <h3 class="file" title={stretch.file}>
            {stretch.file.split(/[\\/]/).at(-1)}
          </h3>
          <ol class="code" start={stretch.first} tabIndex={0} aria-label={`Lines of ${stretch.file}`}>
            {dedented(stretch.lines).map((text, offset) => {
              const here = source !== null && source[0] === place && source[1] === stretch.first + offset;
              return (
                <li
                  ref={here ? marked : undefined}
                  class={here ? (made ? "line here differentiated" : "line here") : "line"}
                  aria-current={here ? "step" : undefined}
                >
                  <span class="number" aria-hidden="true">
                    {stretch.first + offset}
                  </span>
                  <code>{text || " "}</code>
                </li>
              );
            })}
          </ol>
        </div>
      ))}
    </Panel>
  );
}
