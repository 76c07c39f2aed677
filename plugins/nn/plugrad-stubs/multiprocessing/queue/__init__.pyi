# For type checkers: `plugrad.multiprocessing.queue`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.queue import *
