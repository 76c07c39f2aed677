# For type checkers: `plugrad.nn.functions.products`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.products import *
