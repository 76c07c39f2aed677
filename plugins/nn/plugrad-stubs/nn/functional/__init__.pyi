# For type checkers: `plugrad.nn.functional`. Written by tools/stubs.py.
from plugrad_nn.nn.functional import *
