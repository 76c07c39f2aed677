# For type checkers: `plugrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook`. Written by tools/stubs.py.
from plugrad_distributed.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import *
