# For type checkers: `plugrad.distributions.combined`. Written by tools/stubs.py.
from plugrad_distributions.distributions.combined import *
