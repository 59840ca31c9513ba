/* Stands for transport_curl.c in a build without libcurl: refuses. */
#include "transport/transport.h"

static gpurest_status refuse(const struct target *t, struct cancel *c, void **out)
{
    (void)c;
    *out = NULL;
    return fail(GPUREST_E_UNSUPPORTED, "configure it with -DGPUREST_CURL=ON where libcurl is installed, or use ssh -L and http://",
                t->endpoint.scheme == SCHEME_HTTPS ? "this build has no libcurl, which https:// needs"
                                                   : "this build has no libcurl, which gpurest_options.use_libcurl asks for");
}

/* Without a connection nothing else is called. */
const struct transport transport_curl = {.connect = refuse};
