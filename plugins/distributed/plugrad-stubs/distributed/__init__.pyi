# For type checkers: `plugrad.distributed`. Written by tools/stubs.py.
from plugrad_distributed.distributed import *
