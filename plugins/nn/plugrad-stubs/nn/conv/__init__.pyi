# Type checkers look here for `plugrad.nn.conv`. Written by tools/stubs.py.
from plugrad_nn.nn.conv import *
