# For type checkers: `plugrad.multiprocessing.processes`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.processes import *
