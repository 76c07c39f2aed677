# For type checkers: `plugrad.distributions.kl.crossed`. Written by tools/stubs.py.
from plugrad_distributions.distributions.kl.crossed import *
