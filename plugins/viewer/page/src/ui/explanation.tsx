// "What am I seeing": the event in words, and the mechanism behind it.

import { note } from "../notes.ts";
import type { Session } from "./session.ts";
import { Panel } from "./panel.tsx";

export function Explanation({ session }: { session: Session }) {
  const { sentence, concept } = note(session.recording, session.state);
  return (
    <Panel title="What am I seeing?" name="explanation">
      <p class="sentence" data-testid="sentence">
        {sentence}
      </p>
      <div class={`concept ${concept.part}`}>
        <h3>{concept.title}</h3>
        <p>{concept.text}</p>
        {concept.article && (
          <p class="article">
            In PyTorch: <cite>{concept.article}</cite>
          </p>
        )}
      </div>
    </Panel>
  );
}
