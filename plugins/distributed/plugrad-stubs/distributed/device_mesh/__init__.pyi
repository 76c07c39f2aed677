# For type checkers: `plugrad.distributed.device_mesh`. Written by tools/stubs.py.
from plugrad_distributed.distributed.device_mesh import *
