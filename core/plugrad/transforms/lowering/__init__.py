"""`plugrad.compile`: steps captured as graphs, and run by the backend or by a named lowering.

roots      (plugrad.plugins) what a function reaches; numbers: optimizers' numbers, tracked
observing  captures while a step runs for real
compiled   finds the program of a call, or captures one
program    one captured step: what goes in, and what changes
lowerings  compilers that turn a captured step into a function on arrays
step       the input of a lowering
tape       the lowering that every backend gets: kernels looked up once, called one after another
by_device  a compiler that takes its own tensors and the host's, chosen by a call's first tensor
"""
