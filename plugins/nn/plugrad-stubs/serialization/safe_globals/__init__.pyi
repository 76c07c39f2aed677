# For type checkers: `plugrad.serialization.safe_globals`. Written by tools/stubs.py.
from plugrad_nn.serialization.safe_globals import *
