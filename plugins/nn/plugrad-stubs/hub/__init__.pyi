# For type checkers: `plugrad.hub`. Written by tools/stubs.py.
from plugrad_nn.hub import *
