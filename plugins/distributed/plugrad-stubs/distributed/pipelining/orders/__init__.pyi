# For type checkers: `plugrad.distributed.pipelining.orders`. Written by tools/stubs.py.
from plugrad_distributed.distributed.pipelining.orders import *
