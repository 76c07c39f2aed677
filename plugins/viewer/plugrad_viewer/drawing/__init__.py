"""Pictures of graphs: where nodes go, and the SVG of it."""
