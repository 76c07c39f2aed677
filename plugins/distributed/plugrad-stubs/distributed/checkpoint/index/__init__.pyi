# For type checkers: `plugrad.distributed.checkpoint.index`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.index import *
