# For type checkers: `plugrad.distributed.fsdp`. Written by tools/stubs.py.
from plugrad_distributed.distributed.fsdp import *
