# For type checkers: `plugrad.utils.data._utils.pin_memory`. Written by tools/stubs.py.
from plugrad_nn.utils.data._utils.pin_memory import *
