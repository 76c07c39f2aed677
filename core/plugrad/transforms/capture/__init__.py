"""`plugrad.capture`: the operators of a function as a graph that can be read, run and changed.

trees      arguments and results as lists of leaves
recorder   observes a run of the function, naming identifies its tensors, undo restores them
graph      what was recorded: nodes, guards, runs, checks
source     the graph as Python; drawing: as a picture
storing    graphs in files
passes     transform graphs: aliases finds shared memory
"""

from __future__ import annotations

from plugrad.transforms.capture.capturing import capture
from plugrad.transforms.capture.errors import CaptureError, GuardError
from plugrad.transforms.capture.graph import Graph
from plugrad.transforms.capture.node import Constant, Input, Meta, Node, Ref

__all__ = [
    "CaptureError",
    "Constant",
    "Graph",
    "GuardError",
    "Input",
    "Meta",
    "Node",
    "Ref",
    "capture",
]
