# For type checkers: `plugrad.utils.data`. Written by tools/stubs.py.
from plugrad_nn.utils.data import *
