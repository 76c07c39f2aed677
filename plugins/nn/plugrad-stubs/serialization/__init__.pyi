# For type checkers: `plugrad.serialization`. Written by tools/stubs.py.
from plugrad_nn.serialization import *
