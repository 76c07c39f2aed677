# For type checkers: `plugrad.nn.utils.convert_parameters`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.convert_parameters import *
