# For type checkers: `plugrad.distributed.checkpoint.nesting`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.nesting import *
