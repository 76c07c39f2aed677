# For type checkers: `plugrad.multiprocessing.memory`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.memory import *
