# For type checkers: `plugrad.nn.functions.loss`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.loss import *
