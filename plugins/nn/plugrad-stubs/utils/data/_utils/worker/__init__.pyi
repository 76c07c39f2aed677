# For type checkers: `plugrad.utils.data._utils.worker`. Written by tools/stubs.py.
from plugrad_nn.utils.data._utils.worker import *
