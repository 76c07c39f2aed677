# For type checkers: `plugrad.nn.parallel`. Written by tools/stubs.py.
from plugrad_nn.nn.parallel import *
