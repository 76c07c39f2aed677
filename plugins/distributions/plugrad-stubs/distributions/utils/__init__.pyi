# For type checkers: `plugrad.distributions.utils`. Written by tools/stubs.py.
from plugrad_distributions.distributions.utils import *
