# For type checkers: `plugrad.serialization.torch_zip`. Written by tools/stubs.py.
from plugrad_nn.serialization.torch_zip import *
