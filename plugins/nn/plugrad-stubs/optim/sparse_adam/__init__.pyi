# For type checkers: `plugrad.optim.sparse_adam`. Written by tools/stubs.py.
from plugrad_nn.optim.sparse_adam import *
