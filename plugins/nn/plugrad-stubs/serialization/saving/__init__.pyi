# For type checkers: `plugrad.serialization.saving`. Written by tools/stubs.py.
from plugrad_nn.serialization.saving import *
