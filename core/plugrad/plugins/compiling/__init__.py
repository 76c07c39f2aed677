"""For compilers of steps: what a function can reach (`roots`), and lowerings by name
(`lowerings`)."""
