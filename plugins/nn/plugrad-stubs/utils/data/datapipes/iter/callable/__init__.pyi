# For type checkers: `plugrad.utils.data.datapipes.iter.callable`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes.iter.callable import *
