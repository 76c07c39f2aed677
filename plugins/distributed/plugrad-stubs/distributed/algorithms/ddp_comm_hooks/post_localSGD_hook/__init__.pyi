# For type checkers: `plugrad.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook`. Written by tools/stubs.py.
from plugrad_distributed.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import *
