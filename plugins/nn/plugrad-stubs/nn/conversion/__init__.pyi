# For type checkers: `plugrad.nn.conversion`. Written by tools/stubs.py.
from plugrad_nn.nn.conversion import *
