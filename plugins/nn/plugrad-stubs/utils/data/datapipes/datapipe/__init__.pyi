# For type checkers: `plugrad.utils.data.datapipes.datapipe`. Written by tools/stubs.py.
from plugrad_nn.utils.data.datapipes.datapipe import *
