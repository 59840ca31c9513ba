/* URLs and tokens. */
#include "transport/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

static gpurest_status invalid_url(const char *url)
{
    return fail(GPUREST_E_INVAL, "use http://host:port, https://host:port or unix:///path/to/socket", "invalid URL \"%.200s\"", url);
}

static gpurest_status parse_unix(const char *url, const char *path, struct endpoint *out)
{
    if (path[0] != '/' || strlen(path) >= sizeof out->path)
        return invalid_url(url);
    out->scheme = SCHEME_UNIX;
    snprintf(out->path, sizeof out->path, "%s", path);
    snprintf(out->host, sizeof out->host, "localhost");
    snprintf(out->authority, sizeof out->authority, "localhost");
    return GPUREST_OK;
}

static bool port_valid(const char *text, size_t chars)
{
    long port = 0;

    if (chars < 1 || chars > 5)
        return false;
    for (size_t i = 0; i < chars; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = 10 * port + (text[i] - '0');
    }
    return port >= 1 && port <= 65535;
}

static bool host_valid(const char *text, size_t chars)
{
    for (size_t i = 0; i < chars; i++)
        if ((unsigned char)text[i] <= ' ' || strchr("/?#@[]\\\"<>", text[i]) || text[i] == 0x7f)
            return false;
    return chars >= 1 && chars < HOST_BYTES;
}

/* host, host:port, [v6], [v6]:port */
static gpurest_status parse_authority(const char *url, const char *text, size_t chars, struct endpoint *out)
{
    bool        bracketed = chars && text[0] == '[';
    const char *host_end = bracketed ? memchr(text, ']', chars) : memchr(text, ':', chars);
    const char *host = text + bracketed, *rest, *end = text + chars;

    if (bracketed && !host_end)
        return invalid_url(url);
    if (!host_end)
        host_end = end;
    rest = host_end + bracketed;
    if (!host_valid(host, (size_t)(host_end - host)) || (rest < end && (*rest != ':' || !port_valid(rest + 1, (size_t)(end - rest - 1)))))
        return invalid_url(url);
    snprintf(out->host, sizeof out->host, "%.*s", (int)(host_end - host), host);
    snprintf(out->authority, sizeof out->authority, "%.*s", (int)chars, text);
    if (rest < end)
        snprintf(out->port, sizeof out->port, "%.*s", (int)(end - rest - 1), rest + 1);
    else
        snprintf(out->port, sizeof out->port, "%s", out->scheme == SCHEME_HTTPS ? "443" : "80");
    return GPUREST_OK;
}

gpurest_status endpoint_parse(const char *url, struct endpoint *out)
{
    const char *text;
    size_t      chars;

    memset(out, 0, sizeof *out);
    if (strncmp(url, "unix://", 7) == 0)
        return parse_unix(url, url + 7, out);
    if (strncmp(url, "http://", 7) == 0)
        out->scheme = SCHEME_HTTP;
    else if (strncmp(url, "https://", 8) == 0)
        out->scheme = SCHEME_HTTPS;
    else
        return invalid_url(url);
    text = strstr(url, "://") + 3;
    chars = strcspn(text, "/");
    if (chars >= sizeof out->authority || (text[chars] == '/' && text[chars + 1]))
        return invalid_url(url);
    return parse_authority(url, text, chars, out);
}

gpurest_status endpoint_set_address(struct endpoint *e, const char *address)
{
    if (!host_valid(address, strlen(address)))
        return fail_invalid("\"%.200s\" is no address: give a name or an address, without a port", address);
    snprintf(e->address, sizeof e->address, "%s", address);
    return GPUREST_OK;
}

/* ---- the token ---- */

static gpurest_status token_use(const char *token, char out[TOKEN_BYTES_MAX + 1])
{
    size_t chars = strlen(token);

    if (chars > TOKEN_BYTES_MAX)
        return fail_invalid("the token is longer than %d characters", TOKEN_BYTES_MAX);
    for (size_t i = 0; i < chars; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return fail_invalid("the token contains an invalid character");
    memcpy(out, token, chars + 1);
    return GPUREST_OK;
}

static gpurest_status token_read(const char *path, char out[TOKEN_BYTES_MAX + 1])
{
    char  line[TOKEN_BYTES_MAX + 3] = "";
    FILE *file = file_open(path);

    if (!file)
        return fail(GPUREST_E_AUTH, "check the path and its permissions", "cannot read the token file %.300s", path);
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    if (!line[0])
        return fail(GPUREST_E_AUTH, "its first line must be the token", "the token file %.300s is empty", path);
    return token_use(line, out);
}

gpurest_status token_find(const gpurest_options *o, char out[TOKEN_BYTES_MAX + 1])
{
    const char *token = getenv("GPUREST_TOKEN"), *path = getenv("GPUREST_TOKEN_FILE");

    out[0] = '\0';
    if (o->token)
        return token_use(o->token, out);
    if (o->token_file)
        return token_read(o->token_file, out);
    if (token && token[0])
        return token_use(token, out);
    return path && path[0] ? token_read(path, out) : GPUREST_OK;
}
