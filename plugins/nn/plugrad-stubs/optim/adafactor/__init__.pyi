# Type checkers look here for `plugrad.optim.adafactor`. Written by tools/stubs.py.
from plugrad_nn.optim.adafactor import *
