"""What a value is: element types, scalars, memory of the host, and what a kernel's source says of its parameters."""
