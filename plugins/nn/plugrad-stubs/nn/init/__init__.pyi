# For type checkers: `plugrad.nn.init`. Written by tools/stubs.py.
from plugrad_nn.nn.init import *
