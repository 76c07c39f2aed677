# For type checkers: `plugrad.serialization.zip_reading`. Written by tools/stubs.py.
from plugrad_nn.serialization.zip_reading import *
