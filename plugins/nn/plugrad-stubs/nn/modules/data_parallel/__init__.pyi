# For type checkers: `plugrad.nn.modules.data_parallel`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.data_parallel import *
