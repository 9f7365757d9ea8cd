"""Arrays in, arrays out: how kernels are compiled, and leading singular vectors by products alone."""
