# For type checkers: `plugrad.nn.flatten`. Written by tools/stubs.py.
from plugrad_nn.nn.flatten import *
