# For type checkers: `plugrad.nn.utils.parametrizations`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.parametrizations import *
