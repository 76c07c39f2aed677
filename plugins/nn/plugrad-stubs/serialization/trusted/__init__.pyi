# For type checkers: `plugrad.serialization.trusted`. Written by tools/stubs.py.
from plugrad_nn.serialization.trusted import *
