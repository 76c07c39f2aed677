# For type checkers: `plugrad.optim.swapping`. Written by tools/stubs.py.
from plugrad_nn.optim.swapping import *
