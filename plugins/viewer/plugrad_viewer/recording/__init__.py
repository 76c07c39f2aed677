"""Records what a program and the engine do, and converts it to data for a page."""
