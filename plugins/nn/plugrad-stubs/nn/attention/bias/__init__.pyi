# For type checkers: `plugrad.nn.attention.bias`. Written by tools/stubs.py.
from plugrad_nn.nn.attention.bias import *
