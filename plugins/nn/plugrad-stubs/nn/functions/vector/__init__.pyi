# For type checkers: `plugrad.nn.functions.vector`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.vector import *
