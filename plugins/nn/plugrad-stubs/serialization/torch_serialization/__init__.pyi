# For type checkers: `plugrad.serialization.torch_serialization`. Written by tools/stubs.py.
from plugrad_nn.serialization.torch_serialization import *
