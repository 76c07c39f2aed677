# For type checkers: `plugrad.distributed.optim`. Written by tools/stubs.py.
from plugrad_distributed.distributed.optim import *
