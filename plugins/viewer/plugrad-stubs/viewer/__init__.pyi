# For type checkers: `plugrad.viewer`. Written by tools/stubs.py.
from plugrad_viewer.viewer import *
