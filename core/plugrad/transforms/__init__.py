"""Transforms of programs: they take a function of tensors and return a graph or another
function."""
