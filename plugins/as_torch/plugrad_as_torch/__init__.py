"""Programs that were written for PyTorch, on plugrad.

The public module is `plugrad_as_torch.as_torch`, which plugrad has as `plugrad.as_torch`.
"""
