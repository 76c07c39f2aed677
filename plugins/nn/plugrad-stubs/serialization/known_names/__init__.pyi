# For type checkers: `plugrad.serialization.known_names`. Written by tools/stubs.py.
from plugrad_nn.serialization.known_names import *
