# For type checkers: `plugrad.distributed.pipelining.pipe`. Written by tools/stubs.py.
from plugrad_distributed.distributed.pipelining.pipe import *
