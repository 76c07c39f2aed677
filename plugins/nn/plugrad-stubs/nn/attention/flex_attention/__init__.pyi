# For type checkers: `plugrad.nn.attention.flex_attention`. Written by tools/stubs.py.
from plugrad_nn.nn.attention.flex_attention import *
