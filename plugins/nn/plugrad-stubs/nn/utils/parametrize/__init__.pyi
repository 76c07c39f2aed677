# For type checkers: `plugrad.nn.utils.parametrize`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.parametrize import *
