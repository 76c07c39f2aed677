# Type checkers look here for `plugrad.nn.module`. Written by tools/stubs.py.
from plugrad_nn.nn.module import *
