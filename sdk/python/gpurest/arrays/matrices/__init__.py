"""Linear algebra on top of the service's factorizations, as numpy.linalg has it. Matrices are the last two dimensions of an array, all others are a
stack of them; `gpurest.linalg` has the names."""
