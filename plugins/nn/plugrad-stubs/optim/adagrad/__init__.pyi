# For type checkers: `plugrad.optim.adagrad`. Written by tools/stubs.py.
from plugrad_nn.optim.adagrad import *
