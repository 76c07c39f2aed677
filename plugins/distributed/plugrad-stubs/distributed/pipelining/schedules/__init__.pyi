# For type checkers: `plugrad.distributed.pipelining.schedules`. Written by tools/stubs.py.
from plugrad_distributed.distributed.pipelining.schedules import *
