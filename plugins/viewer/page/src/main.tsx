// Starts the page: reads the embedded recording, then shows it.

import { render } from "preact";
import "./style.css";
import { load } from "./load.ts";
import { App } from "./ui/app.tsx";

const root = document.getElementById("viewer")!;
const holder = document.getElementById("recording")!;

load(holder).then(
  (recording) => {
    holder.remove(); // its text would be kept twice
    root.replaceChildren();
    render(<App recording={recording} />, root);
  },
  (error: unknown) => {
    root.textContent = `The recording in this page cannot be read: ${String(error)}`;
  },
);
