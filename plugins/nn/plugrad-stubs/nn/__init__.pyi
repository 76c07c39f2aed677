# For type checkers: `plugrad.nn`. Written by tools/stubs.py.
from plugrad_nn.nn import *
