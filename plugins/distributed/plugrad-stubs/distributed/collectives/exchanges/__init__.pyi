# For type checkers: `plugrad.distributed.collectives.exchanges`. Written by tools/stubs.py.
from plugrad_distributed.distributed.collectives.exchanges import *
