/* What memory a client gives back: none of it holds its token. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <malloc.h>
#include <string.h>

#include "support/mock.h"

static const char         token[] = "a-token-that-must-not-stay";
static _Thread_local bool watching; /* the test's thread; the server's have requests with the token */
static unsigned           left;

void  __real_free(void *memory);
void  __wrap_free(void *memory);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static void look_at(const void *memory)
{
    if (watching && memory && memmem(memory, malloc_usable_size((void *)(uintptr_t)memory), token, sizeof token - 1))
        left++;
}

void __wrap_free(void *memory)
{
    look_at(memory);
    __real_free(memory);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    look_at(memory);
    return __real_realloc(memory, bytes);
}

static void answer(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    (void)arg;
    mock_json(a, 200, strcmp(q->path, "/version") == 0 ? MOCK_VERSION : "{}");
}

/* One head is longer than the first, and the last is shorter than that. */
Test(token, is_in_no_memory_that_a_connection_gives_back)
{
    struct mock    *mock = mock_start(answer, NULL);
    gpurest_options o = GPUREST_OPTIONS_INIT;
    gpurest_client *client;
    char            path[400] = "/v1/devices?", *text;

    memset(path + strlen(path), 'x', sizeof path - strlen(path) - 1);
    o.url = mock_url(mock);
    o.token = token;
    watching = true;
    cr_assert_eq(gpurest_open_with(&client, &o), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_request(client, "GET", path, NULL, &text), GPUREST_OK, "%s", gpurest_last_error()->message);
    gpurest_mem_free(text);
    cr_assert_eq(gpurest_request(client, "GET", "/v1", NULL, &text), GPUREST_OK, "%s", gpurest_last_error()->message);
    gpurest_mem_free(text);
    gpurest_close(client);
    watching = false;
    cr_assert_eq(left, 0);
    mock_stop(mock);
}
