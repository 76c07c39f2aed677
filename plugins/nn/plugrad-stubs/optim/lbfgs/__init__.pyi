# For type checkers: `plugrad.optim.lbfgs`. Written by tools/stubs.py.
from plugrad_nn.optim.lbfgs import *
