# For type checkers: `plugrad.distributed.tensor.parallel`. Written by tools/stubs.py.
from plugrad_distributed.distributed.tensor.parallel import *
