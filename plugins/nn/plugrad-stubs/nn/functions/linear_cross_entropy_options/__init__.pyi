# For type checkers: `plugrad.nn.functions.linear_cross_entropy_options`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.linear_cross_entropy_options import *
