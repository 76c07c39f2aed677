"""Compilers, which do nothing here: `torch.compiler`, `torch.jit`, `torch._dynamo`."""
