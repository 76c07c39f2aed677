# For type checkers: `plugrad.serialization.structure`. Written by tools/stubs.py.
from plugrad_nn.serialization.structure import *
