# For type checkers: `plugrad.distributed.ranks`. Written by tools/stubs.py.
from plugrad_distributed.distributed.ranks import *
