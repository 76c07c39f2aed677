# For type checkers: `plugrad.distributed.collectives.copies`. Written by tools/stubs.py.
from plugrad_distributed.distributed.collectives.copies import *
