# Type checkers look here for `plugrad.nn.utils`. Written by tools/stubs.py.
from plugrad_nn.nn.utils import *
