# For type checkers: `plugrad.nn.utils`. Written by tools/stubs.py.
from plugrad_nn.nn.utils import *
