# For type checkers: `plugrad.distributions.multivariate.simplex`. Written by tools/stubs.py.
from plugrad_distributions.distributions.multivariate.simplex import *
