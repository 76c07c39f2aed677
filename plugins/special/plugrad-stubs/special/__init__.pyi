# Type checkers look here for `plugrad.special`. Written by tools/stubs.py.
from plugrad_special.special import *
