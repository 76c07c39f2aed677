# Type checkers look here for `plugrad.nn.state`. Written by tools/stubs.py.
from plugrad_nn.nn.state import *
