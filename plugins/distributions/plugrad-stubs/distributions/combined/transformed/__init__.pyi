# For type checkers: `plugrad.distributions.combined.transformed`. Written by tools/stubs.py.
from plugrad_distributions.distributions.combined.transformed import *
