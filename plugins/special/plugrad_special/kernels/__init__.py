"""Which function of which library computes an operator: one table per backend, imported with it."""
