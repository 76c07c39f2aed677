# For type checkers: `plugrad.utils.data.graph`. Written by tools/stubs.py.
from plugrad_nn.utils.data.graph import *
