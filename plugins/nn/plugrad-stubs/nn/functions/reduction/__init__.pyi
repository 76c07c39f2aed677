# For type checkers: `plugrad.nn.functions.reduction`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.reduction import *
