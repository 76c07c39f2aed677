// The tree of modules: each can be collapsed to one box of the graph.

import { useMemo, useState } from "preact/hooks";
import { modulesWithNodes, moduleTitle } from "../graph_model.ts";
import { count } from "../units.ts";
import type { Session } from "./session.ts";
import { Panel } from "./panel.tsx";

const MOST = 200;

export function Modules({ session }: { session: Session }) {
  const { recording, collapsed, collapse } = session;
  const modules = useMemo(() => modulesWithNodes(recording).filter((module) => recording.modules[module].name), [recording]);
  const [whole, setWhole] = useState(false);
  // A step changes none of them.
  const entries = useMemo(() => {
    const toggle = (module: number) => {
      const next = new Set(collapsed);
      if (!next.delete(module)) next.add(module);
      collapse(next);
    };
    return (whole ? modules : modules.slice(0, MOST)).map((module) => (
      <li style={{ "--depth": Math.min(depth(session, module), 6) }}>
        <label>
          <input type="checkbox" checked={!collapsed.has(module)} onChange={() => toggle(module)} />
          <span>{moduleTitle(recording, module)}</span>
        </label>
      </li>
    ));
  }, [modules, collapsed, whole]);
  if (!modules.length) return null;
  return (
    <Panel title="Modules" name="modules" extra={<span class="tag">{count(modules.length, "module")}</span>}>
      <ul class="tree">{entries}</ul>
      {!whole && modules.length > MOST && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          show all
        </button>
      )}
      <p class="empty">A box without a tick is drawn as one node.</p>
    </Panel>
  );
}

function depth({ recording }: Session, module: number): number {
  let found = 0;
  for (let one = recording.modules[module].parent; one >= 0; one = recording.modules[one].parent) {
    if (recording.modules[one].name) found += 1;
  }
  return found;
}
