# For type checkers: `plugrad.distributions.univariate.unit_interval`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate.unit_interval import *
