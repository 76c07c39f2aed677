# For type checkers: `plugrad.distributed.algorithms.join`. Written by tools/stubs.py.
from plugrad_distributed.distributed.algorithms.join import *
