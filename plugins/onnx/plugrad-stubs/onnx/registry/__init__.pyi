# For type checkers: `plugrad.onnx.registry`. Written by tools/stubs.py.
from plugrad_onnx.onnx.registry import *
