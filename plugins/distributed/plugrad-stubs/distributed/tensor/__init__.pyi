# For type checkers: `plugrad.distributed.tensor`. Written by tools/stubs.py.
from plugrad_distributed.distributed.tensor import *
