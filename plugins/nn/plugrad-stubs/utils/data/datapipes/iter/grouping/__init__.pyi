# For type checkers: `plugrad.utils.data.datapipes.iter.grouping`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes.iter.grouping import *
