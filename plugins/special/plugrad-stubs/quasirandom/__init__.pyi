# For type checkers: `plugrad.quasirandom`. Written by tools/stubs.py.
from plugrad_special.quasirandom import *
