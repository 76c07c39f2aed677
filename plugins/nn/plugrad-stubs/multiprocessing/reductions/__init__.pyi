# For type checkers: `plugrad.multiprocessing.reductions`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.reductions import *
