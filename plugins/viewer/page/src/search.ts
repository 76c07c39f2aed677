// Finds nodes by name, label, module, operator or number.

import type { Recording } from "./format.ts";

/** The first `most` nodes in which every word occurs, better matches first. */
export function search(recording: Recording, query: string, most = 12): number[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const number = /^#?(\d+)$/.exec(query.trim());
  if (number && Number(number[1]) < recording.nodes.length) return [Number(number[1])];
  const found: { node: number; rank: number }[] = [];
  recording.nodes.forEach((node, place) => {
    const title = `${node.label} ${node.name}`.toLowerCase();
    const module = recording.modules[node.module]?.name ?? "";
    const op = recording.calls[node.call]?.op ?? "";
    const text = `${title} ${module} ${op}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) return;
    const exact = node.label.toLowerCase() === words[0] || node.name.toLowerCase() === words[0];
    const rank = exact ? 0 : title.startsWith(words[0]) ? 1 : title.includes(words[0]) ? 2 : 3;
    found.push({ node: place, rank });
  });
  return found
    .sort((a, b) => a.rank - b.rank || a.node - b.node)
    .slice(0, most)
    .map((one) => one.node);
}
