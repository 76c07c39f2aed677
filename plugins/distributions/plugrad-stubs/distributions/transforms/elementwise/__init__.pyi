# For type checkers: `plugrad.distributions.transforms.elementwise`. Written by tools/stubs.py.
from plugrad_distributions.distributions.transforms.elementwise import *
