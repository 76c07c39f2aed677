# Type checkers look here for `plugrad.utils.checkpoint`. Written by tools/stubs.py.
from plugrad_nn.utils.checkpoint import *
