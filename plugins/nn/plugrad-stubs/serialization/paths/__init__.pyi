# For type checkers: `plugrad.serialization.paths`. Written by tools/stubs.py.
from plugrad_nn.serialization.paths import *
