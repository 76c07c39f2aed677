"""Transforms of programs: functions that take a function of tensors apart."""
