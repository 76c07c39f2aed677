# For type checkers: `plugrad.serialization.sharded`. Written by tools/stubs.py.
from plugrad_nn.serialization.sharded import *
