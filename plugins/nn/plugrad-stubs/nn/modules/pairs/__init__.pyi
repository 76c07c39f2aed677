# For type checkers: `plugrad.nn.modules.pairs`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.pairs import *
