# For type checkers: `plugrad.multiprocessing.descriptors`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.descriptors import *
