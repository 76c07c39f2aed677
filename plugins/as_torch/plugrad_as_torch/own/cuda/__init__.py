"""`torch.cuda`: what of it needs code."""
