# For type checkers: `plugrad.distributed.tensor.placement_types`. Written by tools/stubs.py.
from plugrad_distributed.distributed.tensor.placement_types import *
