# Type checkers look here for `plugrad.nn.overridable`. Written by tools/stubs.py.
from plugrad_nn.nn.overridable import *
