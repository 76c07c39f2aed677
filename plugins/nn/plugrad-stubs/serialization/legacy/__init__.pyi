# For type checkers: `plugrad.serialization.legacy`. Written by tools/stubs.py.
from plugrad_nn.serialization.legacy import *
