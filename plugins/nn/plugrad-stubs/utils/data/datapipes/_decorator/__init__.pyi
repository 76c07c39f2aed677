# For type checkers: `plugrad.utils.data.datapipes._decorator`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes._decorator import *
