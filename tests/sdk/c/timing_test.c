/* Which requests ask for times on the device, and launches of a batch that were timed together. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/mock.h"

static char asked[4096]; /* the last launch's or batch's request, as text */
static bool tells;       /* false: launches and batches are answered with 204 */

static void keep_request(const struct mock_request *q)
{
    size_t bytes = q->body_bytes < sizeof asked - 1 ? q->body_bytes : sizeof asked - 1;

    for (size_t i = 0; i < bytes; i++)
        asked[i] = q->body[i] ? q->body[i] : ' ';
    asked[bytes] = '\0';
}

/* A frame without segments: the launches were timed together. */
static void reply_frame(struct mock_answer *a)
{
    static const char message[] = "{\"status\":\"succeeded\",\"segments\":[],\"ops\":[],\"timing\":{},\"kept\":{}}";
    char              frame[16 + 112];

    memset(frame, ' ', sizeof frame);
    memcpy(frame, "\x89GPR\r\n\x1a\n\x01\0\0\0\x70\0\0", 16);
    memcpy(frame + 16, message, strlen(message));
    mock_reply(a, 200, "", "application/vnd.gpurest.batch", frame, sizeof frame);
}

static void answer(void *tiny, const struct mock_request *q, struct mock_answer *a)
{
    if (strstr(q->path, "/launches") || strstr(q->path, "/batches"))
        keep_request(q);
    if (!tells && (strstr(q->path, "/launches") || strstr(q->path, "/batches")))
        mock_reply(a, 204, "", NULL, NULL, 0);
    else if (strstr(q->path, "/batches"))
        reply_frame(a);
    else
        tiny_handle(tiny, q, a);
}

struct scene {
    struct tiny          *tiny;
    struct mock          *mock;
    gpurest_client       *client;
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *kernel;
    gpurest_arg           args[2];
};

static void open_scene(struct scene *s)
{
    gpurest_buffer b;

    tells = true;
    s->tiny = tiny_create();
    s->mock = mock_start(answer, s->tiny);
    cr_assert_not(gpurest_open(&s->client, mock_url(s->mock)));
    cr_assert_not(gpurest_session_open(&s->session, s->client, NULL));
    cr_assert_not(gpurest_alloc(s->session, &b, 4));
    cr_assert_not(gpurest_compile(s->session, &s->module, "source", NULL, 0));
    cr_assert_not(gpurest_kernel_get(s->module, "k", &s->kernel));
    s->args[0] = GPUREST_BUF(b);
    s->args[1] = GPUREST_U32(1);
}

static void close_scene(struct scene *s)
{
    gpurest_module_unload(s->module);
    gpurest_session_close(s->session);
    gpurest_close(s->client);
    mock_stop(s->mock);
    tiny_destroy(s->tiny);
}

static gpurest_status launch(struct scene *s, gpurest_launch_result *result)
{
    return gpurest_launch_with(s->session, s->kernel, NULL, s->args, 2, result);
}

Test(timing, a_launch_without_a_result_is_not_timed)
{
    struct scene          s;
    gpurest_launch_result r = GPUREST_LAUNCH_RESULT_INIT;

    open_scene(&s);
    cr_assert_not(launch(&s, NULL));
    cr_assert(strstr(asked, "\"timing\":false"), "%s", asked);
    cr_assert_not(launch(&s, &r));
    cr_assert_not(strstr(asked, "timing"), "%s", asked);
    cr_assert_eq(r.gpu_us, 1.5);
    gpurest_mem_free(r.output);
    close_scene(&s);
}

Test(timing, a_batch_is_timed_when_one_of_its_launches_has_a_result)
{
    struct scene          s;
    gpurest_batch        *batch;
    gpurest_launch_result r = GPUREST_LAUNCH_RESULT_INIT;

    open_scene(&s);
    cr_assert_not(gpurest_batch_begin(s.session, &batch));
    cr_assert_not(launch(&s, NULL));
    cr_assert_not(gpurest_batch_submit(batch, NULL));
    cr_assert(strstr(asked, "\"timing\":false"), "%s", asked);
    cr_assert_not(gpurest_batch_begin(s.session, &batch));
    cr_assert_not(launch(&s, NULL));
    cr_assert_not(launch(&s, &r));
    cr_assert_not(gpurest_batch_submit(batch, NULL), "%s", gpurest_last_error()->message);
    cr_assert_not(strstr(asked, "timing"), "%s", asked);
    cr_assert_eq(r.gpu_us, 0); /* timed with the other one */
    cr_assert_str_eq(r.output, "");
    gpurest_mem_free(r.output);
    close_scene(&s);
}

/* What has to be told is missed where it is not. */
Test(timing, an_answer_of_nothing_is_success_where_nothing_is_wanted)
{
    struct scene          s;
    gpurest_batch        *batch;
    gpurest_buffer        b, made;
    gpurest_launch_result r = GPUREST_LAUNCH_RESULT_INIT;
    char                  data[4];

    open_scene(&s);
    cr_assert_not(gpurest_alloc(s.session, &b, sizeof data));
    tells = false;
    cr_assert_not(launch(&s, NULL));
    cr_assert_not(launch(&s, &r));
    cr_assert_str_eq(r.output, "");
    gpurest_mem_free(r.output);
    cr_assert_not(gpurest_batch_begin(s.session, &batch));
    cr_assert_not(launch(&s, NULL));
    cr_assert_not(gpurest_batch_submit(batch, NULL), "%s", gpurest_last_error()->message);
    cr_assert_not(gpurest_batch_begin(s.session, &batch));
    cr_assert_not(gpurest_read(s.session, b, 0, data, sizeof data));
    cr_assert_eq(gpurest_batch_submit(batch, NULL), GPUREST_E_PROTO);
    cr_assert_not(gpurest_batch_begin(s.session, &batch));
    cr_assert_not(gpurest_alloc(s.session, &made, sizeof data));
    cr_assert_eq(gpurest_batch_submit(batch, NULL), GPUREST_E_PROTO);
    close_scene(&s);
}
