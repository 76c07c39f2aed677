# For type checkers: `plugrad.distributed.points`. Written by tools/stubs.py.
from plugrad_distributed.distributed.points import *
