# For type checkers: `plugrad.distributed.algorithms.model_averaging.averagers`. Written by tools/stubs.py.
from plugrad_distributed.distributed.algorithms.model_averaging.averagers import *
