"""What `ops/composite` is for other operators, of families that are loaded on demand."""
