# For type checkers: `plugrad.nn.state`. Written by tools/stubs.py.
from plugrad_nn.nn.state import *
