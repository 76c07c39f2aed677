# For type checkers: `plugrad.nn.looked_up`. Written by tools/stubs.py.
from plugrad_nn.nn.looked_up import *
