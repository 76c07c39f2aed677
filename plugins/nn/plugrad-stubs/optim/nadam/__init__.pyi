# For type checkers: `plugrad.optim.nadam`. Written by tools/stubs.py.
from plugrad_nn.optim.nadam import *
