# For type checkers: `plugrad.utils.data._utils.errors`. Written by tools/stubs.py.
from plugrad_nn.utils.data._utils.errors import *
