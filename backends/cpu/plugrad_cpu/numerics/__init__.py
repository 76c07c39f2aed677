"""What kernels compute with: error function, normal numbers, orders, permutations, sums."""
