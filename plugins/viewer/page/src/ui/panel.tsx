// A titled part of the page.

import type { ComponentChildren } from "preact";

interface Properties {
  title: string;
  name: string;
  extra?: ComponentChildren;
  children: ComponentChildren;
}

export function Panel({ title, name, extra, children }: Properties) {
  return (
    <section class={`panel ${name}`} aria-labelledby={`title-${name}`}>
      <div class="panel-head">
        <h2 id={`title-${name}`}>{title}</h2>
        {extra}
      </div>
      <div class="panel-body">{children}</div>
    </section>
  );
}
