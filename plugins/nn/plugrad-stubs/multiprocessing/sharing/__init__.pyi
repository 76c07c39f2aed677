# For type checkers: `plugrad.multiprocessing.sharing`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.sharing import *
