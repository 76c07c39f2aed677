# For type checkers: `plugrad.nn.factory`. Written by tools/stubs.py.
from plugrad_nn.nn.factory import *
