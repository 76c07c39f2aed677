# For type checkers: `plugrad.onnx.lowerings.recurrent`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.recurrent import *
