// The page contains the recording as JSON or, if it is long, as gzip in base64.

import type { Recording } from "./format.ts";

export async function load(holder: HTMLElement): Promise<Recording> {
  const text = holder.textContent ?? "";
  if (holder.dataset.encoding !== "gzip") return JSON.parse(text) as Recording;
  const letters = atob(text.trim());
  const packed = new Uint8Array(letters.length);
  // Uint8Array.from takes a second for some megabytes.
  for (let place = 0; place < letters.length; place += 1) packed[place] = letters.charCodeAt(place);
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(unpacked).json()) as Recording;
}
