# For type checkers: `plugrad.distributed.objects`. Written by tools/stubs.py.
from plugrad_distributed.distributed.objects import *
