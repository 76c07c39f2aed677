# For type checkers: `plugrad.nn.modules.uninitialized`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.uninitialized import *
