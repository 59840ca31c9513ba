/* The version, for C code. A unit test compares it with the version of the build. */
#ifndef GPUREST_BASE_VERSION_H
#define GPUREST_BASE_VERSION_H

#define GPUREST_VERSION "1.0.0"

#endif
