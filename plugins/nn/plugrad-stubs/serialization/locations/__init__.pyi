# For type checkers: `plugrad.serialization.locations`. Written by tools/stubs.py.
from plugrad_nn.serialization.locations import *
