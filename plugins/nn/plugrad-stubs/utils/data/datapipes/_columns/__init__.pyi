# For type checkers: `plugrad.utils.data.datapipes._columns`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes._columns import *
