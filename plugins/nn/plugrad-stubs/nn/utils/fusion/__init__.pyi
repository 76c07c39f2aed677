# For type checkers: `plugrad.nn.utils.fusion`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.fusion import *
