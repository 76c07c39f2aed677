# Type checkers look here for `plugrad.nn.modules.pairs`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.pairs import *
