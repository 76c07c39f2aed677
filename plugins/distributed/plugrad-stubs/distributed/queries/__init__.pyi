# For type checkers: `plugrad.distributed.queries`. Written by tools/stubs.py.
from plugrad_distributed.distributed.queries import *
