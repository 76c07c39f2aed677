# For type checkers: `plugrad.nn.grad`. Written by tools/stubs.py.
from plugrad_nn.nn.grad import *
