"""Planning: step time and memory on many ranks, from a profile of one and measured costs.

profiles     what a step is made of: nodes, parameters, memory
profiling    makes a profile of a captured step
costs        what collectives cost: lines, algorithms, fits
measuring    measures them, on processes
tensor       a profile split by tensor parallelism
data         gradients and parameters over data parallel ranks
pipeline     stages and microbatches in time
strategies   the classes that users combine
simulating   puts all together: predictions and tables
"""
