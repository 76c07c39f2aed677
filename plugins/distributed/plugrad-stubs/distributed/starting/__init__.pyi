# For type checkers: `plugrad.distributed.starting`. Written by tools/stubs.py.
from plugrad_distributed.distributed.starting import *
