# For type checkers: `plugrad.serialization.pickling`. Written by tools/stubs.py.
from plugrad_nn.serialization.pickling import *
