# For type checkers: `plugrad.distributions.combined.mixture`. Written by tools/stubs.py.
from plugrad_distributions.distributions.combined.mixture import *
