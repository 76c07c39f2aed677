# For type checkers: `plugrad.nn.functions.resampling`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.resampling import *
