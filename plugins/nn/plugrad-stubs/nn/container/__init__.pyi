# For type checkers: `plugrad.nn.container`. Written by tools/stubs.py.
from plugrad_nn.nn.container import *
