# For type checkers: `plugrad.nn.modules`. Written by tools/stubs.py.
from plugrad_nn.nn.modules import *
