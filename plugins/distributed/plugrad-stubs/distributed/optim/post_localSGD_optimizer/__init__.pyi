# For type checkers: `plugrad.distributed.optim.post_localSGD_optimizer`. Written by tools/stubs.py.
from plugrad_distributed.distributed.optim.post_localSGD_optimizer import *
