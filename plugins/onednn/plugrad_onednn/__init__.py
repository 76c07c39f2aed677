"""plugrad-onednn: kernels of the library oneDNN for large float32 arrays on the CPU, as variants.

`library` finds and opens the library, `primitives` calls it, `kernels/` maps operators to
primitives, and `variants` lists what each needs.
"""
