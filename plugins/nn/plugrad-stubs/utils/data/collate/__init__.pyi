# For type checkers: `plugrad.utils.data.collate`. Written by tools/stubs.py.
from plugrad_nn.utils.data.collate import *
