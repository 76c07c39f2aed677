# For type checkers: `plugrad.onnx.memory`. Written by tools/stubs.py.
from plugrad_onnx.onnx.memory import *
