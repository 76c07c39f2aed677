"""Planning: step time and memory on many ranks, from a profile of one and measured costs.

profiles     what a step is made of: nodes, parameters, memory
profiling    makes a profile of a captured step
costs        what collectives cost: lines, algorithms, fits
overheads    what the ways to spread a model take of Python's time
measuring    measures both, on processes; measuring_overheads on one of them, measuring_ranks what
             they take from each other
tensor       a profile split by tensor parallelism
data         gradients and parameters over data parallel ranks
pipeline     stages and microbatches in time
strategies   the classes that users combine
running      puts all together: one prediction
simulating   the functions that users call, for one and for tables of them
"""
