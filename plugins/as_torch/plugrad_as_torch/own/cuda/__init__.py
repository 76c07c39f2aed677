"""`torch.cuda`: the parts that need code."""
