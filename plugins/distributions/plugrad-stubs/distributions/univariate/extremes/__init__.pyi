# For type checkers: `plugrad.distributions.univariate.extremes`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate.extremes import *
