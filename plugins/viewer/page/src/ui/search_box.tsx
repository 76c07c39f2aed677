// The search box: type, choose with the arrows, Enter jumps to the node.

import { useMemo, useState } from "preact/hooks";
import { moduleTitle, nodeTitle } from "../graph_model.ts";
import { search } from "../search.ts";
import type { Session } from "./session.ts";

export function Search({ session, input }: { session: Session; input: { current: HTMLInputElement | null } }) {
  const { recording } = session;
  const [query, setQuery] = useState("");
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const found = useMemo(() => search(recording, query), [recording, query]);
  const choose = (node: number | undefined) => {
    if (node === undefined) return;
    session.jump(node);
    setOpen(false);
    input.current?.blur();
  };
  const keys: Record<string, () => void> = {
    ArrowDown: () => setActive((now) => Math.min(now + 1, found.length - 1)),
    ArrowUp: () => setActive((now) => Math.max(now - 1, 0)),
    Enter: () => choose(found[active]),
    Escape: () => (setOpen(false), input.current?.blur()),
  };
  const shown = open && query.trim() !== "";
  return (
    <div class="search" role="search">
      <input
        ref={input}
        type="search"
        role="combobox"
        list={undefined}
        placeholder="Find a node ( / )"
        aria-label="Find a node"
        aria-expanded={shown}
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant={shown && found.length ? `found-${active}` : undefined}
        value={query}
        onInput={(event) => (setQuery(event.currentTarget.value), setActive(0), setOpen(true))}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (!act) return;
          event.preventDefault();
          event.stopPropagation();
          act();
        }}
      />
      {shown && (
        <ul id="found" role="listbox" class="found" aria-label="Nodes found">
          {found.map((node, place) => (
            <li
              id={`found-${place}`}
              role="option"
              aria-selected={place === active}
              // Before the box loses the focus, which would shut the list.
              onMouseDown={(event) => (event.preventDefault(), choose(node))}
            >
              <strong>{nodeTitle(recording, node)}</strong>
              <span>{[recording.nodes[node].label ? recording.nodes[node].name : "", moduleTitle(recording, recording.nodes[node].module), `#${node}`].filter(Boolean).join(" · ")}</span>
            </li>
          ))}
          {!found.length && <li class="empty">No node is named so.</li>}
        </ul>
      )}
    </div>
  );
}
