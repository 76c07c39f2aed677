# For type checkers: `plugrad.onnx.lowerings.convolution`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.convolution import *
