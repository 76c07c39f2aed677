# For type checkers: `plugrad.nn.modules.shape`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.shape import *
