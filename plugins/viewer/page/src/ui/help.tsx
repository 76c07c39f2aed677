// The dialog with keys, colours and the mechanisms by name.

import { useEffect, useRef } from "preact/hooks";
import { CONCEPTS } from "../notes.ts";
import { Icon } from "./icons.tsx";

const KEYS: [string, string][] = [
  ["Space", "play, pause"],
  ["→  ←", "one event forward, back"],
  ["Shift →  ←", "to the next call or node that begins, or the former"],
  ["Home  End", "to the start, to the end"],
  ["+  −", "faster, slower"],
];
const ALWAYS: [string, string][] = [
  ["/", "find a node; Enter jumps to it"],
  ["d", "dark mode"],
  ["t", "small text"],
  ["Esc", "close"],
  ["?", "this page"],
];
const COLOURS: [string, string][] = [
  ["made", "in the graph"],
  ["waiting", "waits for gradients"],
  ["ready", "in a ready queue"],
  ["running", "runs"],
  ["done", "has run"],
];

export function Help({ close, alone }: { close(): void; alone: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <div class="panel-head">
        <h2 id="help-title">Keys, colours, words</h2>
        <button type="button" class="tool" onClick={close} aria-label="Close help">
          <Icon name="close" />
        </button>
      </div>
      <div class="panel-body">
        <dl class="keys">
          {(alone ? ALWAYS : [...KEYS, ...ALWAYS]).map(([key, what]) => (
            <div>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <p>Drag the graph to move it, turn the wheel to zoom, click a node for details, click a module's frame twice to collapse it.</p>
        {!alone && (
          <ul class="legend">
            {COLOURS.map(([name, what]) => (
              <li>
                <span class={`swatch ${name}`} /> {what}
              </li>
            ))}
          </ul>
        )}
        <dl class="words">
          {Object.values(CONCEPTS).map(({ title, text, article }) => (
            <div>
              <dt>{title}</dt>
              <dd>
                {text}
                {article && (
                  <span class="article">
                    {" "}
                    In PyTorch: <cite>{article}</cite>
                  </span>
                )}
              </dd>
            </div>
          ))}
        </dl>
      </div>
    </dialog>
  );
}
