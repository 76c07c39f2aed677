# For type checkers: `plugrad.optim.elementwise`. Written by tools/stubs.py.
from plugrad_nn.optim.elementwise import *
