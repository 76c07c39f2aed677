# For type checkers: `plugrad.utils.data.dataset`. Written by tools/stubs.py.
from plugrad_nn.utils.data.dataset import *
