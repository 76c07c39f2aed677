# For type checkers: `plugrad.distributed.algorithms.ddp_comm_hooks.debugging_hooks`. Written by tools/stubs.py.
from plugrad_distributed.distributed.algorithms.ddp_comm_hooks.debugging_hooks import *
