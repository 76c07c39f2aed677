# For type checkers: `plugrad.optim.adadelta`. Written by tools/stubs.py.
from plugrad_nn.optim.adadelta import *
