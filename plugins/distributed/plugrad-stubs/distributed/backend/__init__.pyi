# For type checkers: `plugrad.distributed.backend`. Written by tools/stubs.py.
from plugrad_distributed.distributed.backend import *
