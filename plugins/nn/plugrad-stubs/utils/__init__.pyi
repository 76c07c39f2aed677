# Type checkers look here for `plugrad.utils`. Written by tools/stubs.py.
from plugrad_nn.utils import *
