# For type checkers: `plugrad.utils.flop_counter`. Written by tools/stubs.py.
from plugrad_nn.utils.flop_counter import *
