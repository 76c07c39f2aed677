# For type checkers: `plugrad.distributions.combined.independent`. Written by tools/stubs.py.
from plugrad_distributions.distributions.combined.independent import *
