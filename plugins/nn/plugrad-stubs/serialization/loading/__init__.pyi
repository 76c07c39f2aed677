# For type checkers: `plugrad.serialization.loading`. Written by tools/stubs.py.
from plugrad_nn.serialization.loading import *
