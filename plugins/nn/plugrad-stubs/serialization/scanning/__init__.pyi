# For type checkers: `plugrad.serialization.scanning`. Written by tools/stubs.py.
from plugrad_nn.serialization.scanning import *
