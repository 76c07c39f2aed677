# For type checkers: `plugrad.nn.functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions import *
