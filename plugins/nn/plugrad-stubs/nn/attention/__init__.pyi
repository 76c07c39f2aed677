# For type checkers: `plugrad.nn.attention`. Written by tools/stubs.py.
from plugrad_nn.nn.attention import *
