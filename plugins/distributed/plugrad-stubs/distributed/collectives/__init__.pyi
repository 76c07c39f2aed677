# For type checkers: `plugrad.distributed.collectives`. Written by tools/stubs.py.
from plugrad_distributed.distributed.collectives import *
