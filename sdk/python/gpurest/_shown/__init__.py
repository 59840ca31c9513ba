"""What people see: what kernels print, and objects in notebooks."""
