"""Pictures of graphs: layout of nodes, and SVG."""
