# For type checkers: `plugrad.onnx.lowerings.resampling`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.resampling import *
