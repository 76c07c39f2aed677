"""How elements come together: sizes that broadcast, tensors that are joined, orders in memory."""
