# For type checkers: `plugrad.distributed.checkpoint.reading`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.reading import *
