# For type checkers: `plugrad.nn.parameter`. Written by tools/stubs.py.
from plugrad_nn.nn.parameter import *
