"""`plugrad.distributed.simulate`: predicts step time and memory on many ranks from a profile of one
and the cost of communication.

>>> from plugrad.distributed.simulate import Costs
>>> costs = Costs.of(latency=1e-6, bandwidth=1e9)
>>> round(costs.call("all_reduce", 2, 1e6).seconds, 6)
0.001001
"""

from __future__ import annotations

from plugrad_distributed.planning.costs import Call, Costs, Line, Point, fastest, fit_line
from plugrad_distributed.planning.measuring import measure_collectives, measure_contention
from plugrad_distributed.planning.overheads import Overheads
from plugrad_distributed.planning.predictions import Memory, Prediction, Table
from plugrad_distributed.planning.profiles import NodeCost, ParameterCost, Profile
from plugrad_distributed.planning.profiling import profile_step
from plugrad_distributed.planning.simulating import simulate, sweep
from plugrad_distributed.planning.strategies import (
    DataParallel,
    FullySharded,
    Pipeline,
    TensorParallel,
)

__all__ = [
    "Call",
    "Costs",
    "DataParallel",
    "FullySharded",
    "Line",
    "Memory",
    "NodeCost",
    "Overheads",
    "ParameterCost",
    "Pipeline",
    "Point",
    "Prediction",
    "Profile",
    "Table",
    "TensorParallel",
    "fastest",
    "fit_line",
    "measure_collectives",
    "measure_contention",
    "profile_step",
    "simulate",
    "sweep",
]
