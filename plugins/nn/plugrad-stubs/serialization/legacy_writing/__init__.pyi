# For type checkers: `plugrad.serialization.legacy_writing`. Written by tools/stubs.py.
from plugrad_nn.serialization.legacy_writing import *
