# For type checkers: `plugrad.distributions.univariate.gamma`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate.gamma import *
