# Type checkers look here for `plugrad.nn.resampling`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.resampling import *
