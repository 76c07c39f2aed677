# For type checkers: `plugrad.onnx.lowerings.bags`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.bags import *
