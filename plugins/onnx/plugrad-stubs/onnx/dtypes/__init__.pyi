# For type checkers: `plugrad.onnx.dtypes`. Written by tools/stubs.py.
from plugrad_onnx.onnx.dtypes import *
