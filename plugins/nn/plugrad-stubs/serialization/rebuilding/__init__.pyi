# For type checkers: `plugrad.serialization.rebuilding`. Written by tools/stubs.py.
from plugrad_nn.serialization.rebuilding import *
