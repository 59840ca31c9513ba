/* c[i] = a[i] + b[i] for i < n; x[i] *= f for i < n; a fault; an endless loop; a struct of two pointers; 8 KiB of shared memory. */
#pragma once

extern const char kernels_ptx[];
