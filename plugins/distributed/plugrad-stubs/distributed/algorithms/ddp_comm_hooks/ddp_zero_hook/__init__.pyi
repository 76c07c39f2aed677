# For type checkers: `plugrad.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook`. Written by tools/stubs.py.
from plugrad_distributed.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import *
