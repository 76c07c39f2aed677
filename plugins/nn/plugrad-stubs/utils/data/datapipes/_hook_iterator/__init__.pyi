# For type checkers: `plugrad.utils.data.datapipes._hook_iterator`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes._hook_iterator import *
