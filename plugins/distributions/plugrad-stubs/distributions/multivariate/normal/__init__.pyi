# For type checkers: `plugrad.distributions.multivariate.normal`. Written by tools/stubs.py.
from plugrad_distributions.distributions.multivariate.normal import *
