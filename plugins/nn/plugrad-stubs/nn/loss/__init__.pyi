# For type checkers: `plugrad.nn.loss`. Written by tools/stubs.py.
from plugrad_nn.nn.loss import *
