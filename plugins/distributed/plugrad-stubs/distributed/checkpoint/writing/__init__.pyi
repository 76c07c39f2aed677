# For type checkers: `plugrad.distributed.checkpoint.writing`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.writing import *
