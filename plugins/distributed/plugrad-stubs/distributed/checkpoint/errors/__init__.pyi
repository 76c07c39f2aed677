# For type checkers: `plugrad.distributed.checkpoint.errors`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.errors import *
