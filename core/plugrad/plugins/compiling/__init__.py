"""For compilers of steps: what a function reaches (`roots`), who lowers (`lowerings`)."""
