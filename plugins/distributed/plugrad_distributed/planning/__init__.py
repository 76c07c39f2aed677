"""Planning: step time and memory on many ranks, from a profile of one and measured costs.

profiles     the parts of a step: nodes, parameters, memory
profiling    makes a profile of a captured step
costs        the costs of collectives: lines, algorithms, fits
overheads    Python's time for the ways to spread a model
measuring    measures both, on processes; measuring_overheads on one of them, measuring_ranks the
             time that ranks take from each other
tensor       a profile split by tensor parallelism
data         gradients and parameters over data parallel ranks
pipeline     stages and microbatches in time
strategies   the classes that users combine
running      combines everything into one prediction
simulating   the functions that users call, for one and for tables of them
"""
