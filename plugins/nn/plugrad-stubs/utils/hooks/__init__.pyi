# For type checkers: `plugrad.utils.hooks`. Written by tools/stubs.py.
from plugrad_nn.utils.hooks import *
