# For type checkers: `plugrad.distributed.algorithms`. Written by tools/stubs.py.
from plugrad_distributed.distributed.algorithms import *
