# For type checkers: `plugrad.distributed.simulate`. Written by tools/stubs.py.
from plugrad_distributed.distributed.simulate import *
