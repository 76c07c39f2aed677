# For type checkers: `plugrad.onnx.lowerings`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings import *
