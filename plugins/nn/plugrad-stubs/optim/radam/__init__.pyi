# Type checkers look here for `plugrad.optim.radam`. Written by tools/stubs.py.
from plugrad_nn.optim.radam import *
