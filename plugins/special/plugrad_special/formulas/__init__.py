"""The functions that YAML entries name: longer derivatives, decompositions, checks."""
