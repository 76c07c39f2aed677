"""What the YAML entries name: longer derivatives, decompositions, checks."""
