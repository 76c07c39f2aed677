# For type checkers: `plugrad.optim`. Written by tools/stubs.py.
from plugrad_nn.optim import *
