# For type checkers: `plugrad.multiprocessing`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing import *
