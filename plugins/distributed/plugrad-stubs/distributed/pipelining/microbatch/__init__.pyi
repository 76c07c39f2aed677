# For type checkers: `plugrad.distributed.pipelining.microbatch`. Written by tools/stubs.py.
from plugrad_distributed.distributed.pipelining.microbatch import *
