# For type checkers: `plugrad.distributed.pipelining`. Written by tools/stubs.py.
from plugrad_distributed.distributed.pipelining import *
