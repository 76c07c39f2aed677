# For type checkers: `plugrad.distributed.monitoring`. Written by tools/stubs.py.
from plugrad_distributed.distributed.monitoring import *
