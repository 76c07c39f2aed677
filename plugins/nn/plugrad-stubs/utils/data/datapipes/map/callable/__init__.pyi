# For type checkers: `plugrad.utils.data.datapipes.map.callable`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes.map.callable import *
