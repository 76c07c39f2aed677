// The recording lies in the page as JSON; if it is long, as gzip in base64.

import type { Recording } from "./format.ts";

export async function load(holder: HTMLElement): Promise<Recording> {
  const text = holder.textContent ?? "";
  if (holder.dataset.encoding !== "gzip") return JSON.parse(text) as Recording;
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(unpacked).json()) as Recording;
}
