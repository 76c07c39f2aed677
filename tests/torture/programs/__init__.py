"""Random programs with nearly every differentiable operator, compared with PyTorch."""
