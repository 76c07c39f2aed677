# For type checkers: `plugrad.distributed.pipelining.stage`. Written by tools/stubs.py.
from plugrad_distributed.distributed.pipelining.stage import *
