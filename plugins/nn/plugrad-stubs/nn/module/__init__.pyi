# For type checkers: `plugrad.nn.module`. Written by tools/stubs.py.
from plugrad_nn.nn.module import *
