"""Functions that the `forward:` rules of the YAML files name, by family."""
