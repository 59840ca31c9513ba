/* A real gpurestd on the cpu device, and clients of it. */
#pragma once

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

/* What most tests start from: a service with a client, a session, and the module of the source above. Functions for .init and .fini of a suite. */
struct world {
    struct service        service;
    gpurest_client       *client;
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *add_one, *axpy, *talk, *spin;
};

extern struct world w;

void world_start(void);
void world_start_bare(void); /* without the module */
/* The service alone, with that argument. */
void world_serve(const char *argument, const char *value);
/* A client of it and a session. */
void world_connect(const char *url);
/* Ends what there is. */
void world_end(void);
/* Of that module. */
const gpurest_kernel *world_kernel(const char *name);

/* 0 where fine; else prints the thread's error and gives 1. For cr_assert_not(). */
int bad(gpurest_status st);
