"""ONNX files of plugrad's models; see `plugrad.onnx`."""
