# For type checkers: `plugrad.utils.data._utils.iteration`. Written by tools/stubs.py.
from plugrad_nn.utils.data._utils.iteration import *
