# For type checkers: `plugrad.distributed.functional`. Written by tools/stubs.py.
from plugrad_distributed.distributed.functional import *
