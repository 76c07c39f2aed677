"""What is there only because programs written for PyTorch use it."""
