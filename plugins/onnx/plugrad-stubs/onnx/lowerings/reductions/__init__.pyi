# For type checkers: `plugrad.onnx.lowerings.reductions`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.reductions import *
