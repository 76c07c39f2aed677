# For type checkers: `plugrad.distributed.pipelining.splitting`. Written by tools/stubs.py.
from plugrad_distributed.distributed.pipelining.splitting import *
