# For type checkers: `plugrad.nn.hooks`. Written by tools/stubs.py.
from plugrad_nn.nn.hooks import *
