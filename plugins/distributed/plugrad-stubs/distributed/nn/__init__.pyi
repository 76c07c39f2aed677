# For type checkers: `plugrad.distributed.nn`. Written by tools/stubs.py.
from plugrad_distributed.distributed.nn import *
