# For type checkers: `plugrad.serialization.options`. Written by tools/stubs.py.
from plugrad_nn.serialization.options import *
