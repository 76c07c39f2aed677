# For type checkers: `plugrad.utils.data._utils.multiprocess`. Written by tools/stubs.py.
from plugrad_nn.utils.data._utils.multiprocess import *
