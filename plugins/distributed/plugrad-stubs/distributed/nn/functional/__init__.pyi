# For type checkers: `plugrad.distributed.nn.functional`. Written by tools/stubs.py.
from plugrad_distributed.distributed.nn.functional import *
