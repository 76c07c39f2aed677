# For type checkers: `plugrad.distributions.univariate.transformed`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate.transformed import *
