"""Names that exist only because programs written for PyTorch use them."""
