# For type checkers: `plugrad.optim.tensor_list`. Written by tools/stubs.py.
from plugrad_nn.optim.tensor_list import *
