# For type checkers: `plugrad.onnx.builder`. Written by tools/stubs.py.
from plugrad_onnx.onnx.builder import *
