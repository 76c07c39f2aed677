# For type checkers: `plugrad.distributed.checkpoint.folders`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.folders import *
