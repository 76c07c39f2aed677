# For type checkers: `plugrad.distributed.checkpoint.pieces`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.pieces import *
