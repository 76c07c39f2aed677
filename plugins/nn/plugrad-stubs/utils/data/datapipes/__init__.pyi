# For type checkers: `plugrad.utils.data.datapipes`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes import *
