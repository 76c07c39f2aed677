# For type checkers: `plugrad.multiprocessing.pool`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.pool import *
