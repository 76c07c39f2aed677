# Type checkers look here for `plugrad.cuda`. Written by tools/stubs.py.
from plugrad_cuda.cuda import *
