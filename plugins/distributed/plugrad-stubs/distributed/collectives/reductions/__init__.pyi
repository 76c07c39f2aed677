# For type checkers: `plugrad.distributed.collectives.reductions`. Written by tools/stubs.py.
from plugrad_distributed.distributed.collectives.reductions import *
