# For type checkers: `plugrad.distributed.optim.zero_redundancy_optimizer`. Written by tools/stubs.py.
from plugrad_distributed.distributed.optim.zero_redundancy_optimizer import *
