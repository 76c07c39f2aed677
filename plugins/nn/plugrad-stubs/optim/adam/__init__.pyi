# For type checkers: `plugrad.optim.adam`. Written by tools/stubs.py.
from plugrad_nn.optim.adam import *
