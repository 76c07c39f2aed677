# For type checkers: `plugrad.optim.functional`. Written by tools/stubs.py.
from plugrad_nn.optim.functional import *
