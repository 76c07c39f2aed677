# For type checkers: `plugrad.distributed.collectives.barriers`. Written by tools/stubs.py.
from plugrad_distributed.distributed.collectives.barriers import *
