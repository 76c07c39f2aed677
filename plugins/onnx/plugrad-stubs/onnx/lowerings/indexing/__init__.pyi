# For type checkers: `plugrad.onnx.lowerings.indexing`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.indexing import *
