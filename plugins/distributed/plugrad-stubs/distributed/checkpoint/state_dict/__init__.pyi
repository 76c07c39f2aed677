# For type checkers: `plugrad.distributed.checkpoint.state_dict`. Written by tools/stubs.py.
from plugrad_distributed.distributed.checkpoint.state_dict import *
