# For type checkers: `plugrad.nn.attention.block_masks`. Written by tools/stubs.py.
from plugrad_nn.nn.attention.block_masks import *
