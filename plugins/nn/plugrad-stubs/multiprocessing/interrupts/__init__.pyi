# For type checkers: `plugrad.multiprocessing.interrupts`. Written by tools/stubs.py.
from plugrad_nn.multiprocessing.interrupts import *
