"""Which primitive of oneDNN computes which operator."""
