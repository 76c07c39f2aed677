"""The autograd graph: nodes, edges, saved variables."""
