# For type checkers: `plugrad.distributed.checkpoint`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint import *
