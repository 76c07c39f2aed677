# For type checkers: `plugrad.utils.data.datapipes.map.grouping`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes.map.grouping import *
