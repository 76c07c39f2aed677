# For type checkers: `plugrad.nn.functions.attention`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.attention import *
