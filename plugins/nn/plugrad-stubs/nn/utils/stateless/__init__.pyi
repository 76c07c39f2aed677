# For type checkers: `plugrad.nn.utils.stateless`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.stateless import *
