"""Broadcasting of sizes, joining of tensors, and memory formats."""
