# For type checkers: `plugrad.distributed.calls`. Written by tools/stubs.py.
from plugrad_distributed.distributed.calls import *
