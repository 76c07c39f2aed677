# For type checkers: `plugrad.special`. Written by tools/stubs.py.
from plugrad_special.special import *
