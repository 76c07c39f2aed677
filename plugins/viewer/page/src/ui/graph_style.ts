// How Cytoscape draws the graph; the colours are the page's.

import type { StylesheetJson } from "cytoscape";

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function graphStyle(many: boolean): StylesheetJson {
  const status = (name: string) => ({
    selector: `node.${name}`,
    style: { "background-color": colour(`${name}-fill`), "border-color": colour(`${name}-line`) },
  });
  return [
    {
      selector: "node.box",
      style: {
        shape: many ? "rectangle" : "round-rectangle",
        width: 132,
        height: 36,
        label: "data(label)",
        "font-family": "system-ui, sans-serif",
        "font-size": 11,
        "line-height": 1.2,
        "text-valign": "center",
        "text-halign": "center",
        "text-wrap": many ? "none" : "wrap",
        "text-max-width": "128px",
        "min-zoomed-font-size": many ? 7 : 5,
        color: colour("ink"),
        "background-color": colour("made-fill"),
        "border-color": colour("made-line"),
        "border-width": 1.5,
      },
    },
    { selector: "node.leaf", style: { shape: "ellipse", width: 140, height: 40 } },
    { selector: "node.root", style: { shape: "round-octagon" } },
    {
      selector: "node.module",
      style: { "border-style": "double", "border-width": 5, height: 46, width: 168, "text-max-width": "160px", "font-weight": "bold" },
    },
    {
      selector: "node.frame",
      style: {
        shape: "round-rectangle",
        label: "data(label)",
        "font-size": 11,
        "font-family": "system-ui, sans-serif",
        "text-valign": "top",
        "text-halign": "center",
        "text-margin-y": -2,
        color: colour("soft"),
        "background-color": colour("frame"),
        "background-opacity": 0.45,
        "border-color": colour("line"),
        "border-width": 1,
        padding: "10px",
        "min-zoomed-font-size": 7,
      },
    },
    status("made"),
    status("waiting"),
    status("ready"),
    status("running"),
    status("done"),
    { selector: "node.leaf.made", style: { "border-color": colour("leaf") } },
    { selector: "node.running", style: { color: colour("running-ink"), "border-width": 3 } },
    { selector: "node.ready", style: { "border-width": 2.5 } },
    { selector: "node.box.absent", style: { opacity: 0.16, "border-style": "dashed" } },
    { selector: "node.frame.absent", style: { "background-opacity": 0.12, "border-opacity": 0.4, "text-opacity": 0.35 } },
    { selector: "edge.absent", style: { opacity: 0.15 } },
    {
      selector: "edge",
      style: many
        ? { "curve-style": "haystack", width: 1.5, "line-color": colour("edge") }
        : {
            "curve-style": "bezier",
            width: 1.5,
            "line-color": colour("edge"),
            "target-arrow-color": colour("edge"),
            "target-arrow-shape": "triangle",
            "arrow-scale": 0.9,
          },
    },
    { selector: ".dim", style: { opacity: 0.15 } },
    { selector: "node.chosen", style: { "outline-width": 3, "outline-color": colour("accent"), "outline-offset": 3 } },
    {
      selector: "node.current",
      style: { "underlay-color": colour("accent"), "underlay-opacity": 0.28, "underlay-padding": 9, "z-index": 10 },
    },
    { selector: "edge.flow", style: { width: 4, "line-color": colour("running-line"), "target-arrow-color": colour("running-line") } },
  ] as StylesheetJson;
}
