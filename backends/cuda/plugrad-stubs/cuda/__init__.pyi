# For type checkers: `plugrad.cuda`. Written by tools/stubs.py.
from plugrad_cuda.cuda import *
