/* A real gpurestd on the cpu device, and clients of it. */
#ifndef GPUREST_TESTS_SDK_FIXTURE_H
#define GPUREST_TESTS_SDK_FIXTURE_H

#include <gpurest/gpurest.h>
#include <sys/types.h>

struct service {
    pid_t pid;
    char  folder[64], url[64], unix_url[96];
};

/* `argument` and its value may be NULL. Ends the program when the service does not start. */
void service_start(struct service *s, const char *argument, const char *value);
/* Stops the service in order; fails the test unless it ends well. */
void service_stop(struct service *s);

/* A client, and a session of it; ends the test with the reason on failure. use_libcurl: both transports must work. */
gpurest_client  *client_of(const char *url, int use_libcurl);
gpurest_session *session_of(gpurest_client *c);

/* "extern "C" __global__ void add_one(unsigned char *x, unsigned n)" and others; see fixture.c. */
extern const char     kernels_source[];
const gpurest_kernel *kernel_of(gpurest_session *s, gpurest_module **m, const char *name);

/* 0 when OK; else prints the thread's error and returns 1. For cr_assert_not(). */
int bad(gpurest_status st);

#endif
