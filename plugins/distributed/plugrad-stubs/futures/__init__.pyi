# For type checkers: `plugrad.futures`. Written by tools/stubs.py.
from plugrad_distributed.futures import *
