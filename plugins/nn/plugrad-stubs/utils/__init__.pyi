# For type checkers: `plugrad.utils`. Written by tools/stubs.py.
from plugrad_nn.utils import *
