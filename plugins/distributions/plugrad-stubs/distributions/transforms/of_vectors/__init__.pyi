# For type checkers: `plugrad.distributions.transforms.of_vectors`. Written by tools/stubs.py.
from plugrad_distributions.distributions.transforms.of_vectors import *
