"""Meshes: ranks in a grid, with a group along each dimension."""
