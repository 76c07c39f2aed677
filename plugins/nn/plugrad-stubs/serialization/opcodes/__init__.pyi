# For type checkers: `plugrad.serialization.opcodes`. Written by tools/stubs.py.
from plugrad_nn.serialization.opcodes import *
