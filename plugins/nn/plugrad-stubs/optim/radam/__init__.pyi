# For type checkers: `plugrad.optim.radam`. Written by tools/stubs.py.
from plugrad_nn.optim.radam import *
