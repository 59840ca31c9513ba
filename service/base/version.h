/* The one place of the version in C; a unit test keeps it equal to the build's. */
#ifndef GPUREST_BASE_VERSION_H
#define GPUREST_BASE_VERSION_H

#define GPUREST_VERSION "0.1.0"

#endif
