# For type checkers: `plugrad.distributions.kl.families`. Written by tools/stubs.py.
from plugrad_distributions.distributions.kl.families import *
