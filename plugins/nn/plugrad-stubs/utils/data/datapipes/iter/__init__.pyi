# For type checkers: `plugrad.utils.data.datapipes.iter`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes.iter import *
