# For type checkers: `plugrad.nn.functions.recurrent`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.recurrent import *
