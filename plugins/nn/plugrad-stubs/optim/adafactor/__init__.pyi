# For type checkers: `plugrad.optim.adafactor`. Written by tools/stubs.py.
from plugrad_nn.optim.adafactor import *
