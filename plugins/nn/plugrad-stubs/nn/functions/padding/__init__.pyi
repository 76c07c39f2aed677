# For type checkers: `plugrad.nn.functions.padding`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.padding import *
