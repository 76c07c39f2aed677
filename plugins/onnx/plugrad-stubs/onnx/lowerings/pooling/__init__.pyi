# For type checkers: `plugrad.onnx.lowerings.pooling`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.pooling import *
