/* The version, for C code. A unit test compares it with the version of the build. */
#pragma once

#define GPUREST_VERSION "1.0.0"
