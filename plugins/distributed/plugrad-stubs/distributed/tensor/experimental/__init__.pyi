# For type checkers: `plugrad.distributed.tensor.experimental`. Written by tools/stubs.py.
from plugrad_distributed.distributed.tensor.experimental import *
