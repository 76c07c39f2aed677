# For type checkers: `plugrad.utils.data.pin_memory`. Written by tools/stubs.py.
from plugrad_nn.utils.data.pin_memory import *
