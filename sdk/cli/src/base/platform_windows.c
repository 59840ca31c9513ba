/* Windows 10 and later, built with MinGW. */
#include "base/platform.h"

#define WIN32_LEAN_AND_MEAN
#include <winsock2.h>
#include <ws2tcpip.h>
/* after winsock2.h */
#include <windows.h>
/* after windows.h */
#include <shellapi.h>

#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { MODE_BYTES = 8 }; /* characters of fopen()'s mode */

/* ---- the process ---- */

static bool escapes; /* the console understands escape sequences */

static void prepare_console(DWORD which)
{
    HANDLE console = GetStdHandle(which);
    DWORD  mode;

    if (GetConsoleMode(console, &mode) && SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING))
        escapes = true;
}

/* One argument in UTF-8; NULL: out of memory. */
static char *utf8_of(const wchar_t *wide)
{
    int   bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *out = bytes > 0 ? malloc((size_t)bytes) : NULL;

    if (out)
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, bytes, NULL, NULL);
    return out;
}

/* main() gets the arguments in an older code page. They live until the process ends. On failure those stay. */
static void take_arguments(int *argc, char ***argv)
{
    int       count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char    **all = wide && count >= 0 ? calloc((size_t)count + 1, sizeof *all) : NULL;
    bool      ok = all != NULL;

    for (int i = 0; ok && i < count; i++) {
        all[i] = utf8_of(wide[i]);
        ok = all[i] != NULL;
    }
    LocalFree((HLOCAL)wide);
    if (!ok)
        return;
    *argc = count;
    *argv = all;
}

/* The locale lets paths be UTF-8; numbers stay as in C. */
void platform_begin(int *argc, char ***argv)
{
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
    _setmode(_fileno(stderr), _O_BINARY);
    setlocale(LC_CTYPE, ".UTF8");
    SetConsoleOutputCP(CP_UTF8);
    prepare_console(STD_OUTPUT_HANDLE);
    prepare_console(STD_ERROR_HANDLE);
    take_arguments(argc, argv);
}

/* Asked after writing failed: of a pipe there is no other reason. */
bool output_reader_gone(void)
{
    return GetFileType(GetStdHandle(STD_OUTPUT_HANDLE)) == FILE_TYPE_PIPE && ferror(stdout);
}

static struct {
    void (*handle)(int number, void *arg);
    void *arg;
} watched;

/* Windows calls it in a thread of its own. */
static BOOL WINAPI on_interrupt(DWORD event)
{
    SetConsoleCtrlHandler(on_interrupt, FALSE); /* a second one ends the process at once */
    watched.handle(event == CTRL_C_EVENT ? SIGINT : SIGTERM, watched.arg);
    return TRUE;
}

void interrupts_watch(void (*handle)(int number, void *arg), void *arg)
{
    watched.handle = handle;
    watched.arg = arg;
    SetConsoleCtrlHandler(on_interrupt, TRUE);
}

/* ---- other programs ---- */

bool programs_supported(void)
{
    return false;
}

bool program_folder(char *out, size_t room)
{
    (void)out;
    (void)room;
    return false;
}

bool program_set_variable(const char *name, const char *value)
{
    (void)name;
    (void)value;
    return false;
}

int program_become(char *const *argv)
{
    (void)argv;
    return ENOSYS;
}

long program_start(char *const *argv, const char *log_path)
{
    (void)argv;
    (void)log_path;
    return -1;
}

bool program_runs(long id)
{
    (void)id;
    return false;
}

void program_stop(long id)
{
    (void)id;
}

int program_run(char *const *argv)
{
    (void)argv;
    return 126;
}

void program_die_alike(int code)
{
    (void)code;
}

/* ---- files ---- */

bool folder_make_temporary(char *out, size_t room)
{
    (void)out;
    (void)room;
    return false;
}

void folder_delete(const char *path)
{
    (void)path;
}

/* Freed by the caller; NULL: out of memory, or not UTF-8, with errno. */
static wchar_t *wide_of(const char *text)
{
    int      count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *out = count > 0 ? calloc((size_t)count, sizeof *out) : NULL;

    if (!out)
        errno = count > 0 ? ENOMEM : EILSEQ;
    else
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out, count);
    return out;
}

/* N: not inherited. */
FILE *stream_open(const char *path, const char *mode)
{
    wchar_t  with_flag[MODE_BYTES];
    wchar_t *wide = wide_of(path);
    FILE    *opened = NULL;

    swprintf(with_flag, MODE_BYTES, L"%hsN", mode);
    if (wide)
        opened = _wfopen(wide, with_flag);
    free(wide);
    return opened;
}

/* rename() refuses where there is a file. */
bool file_replace(const char *from, const char *to)
{
    wchar_t *wide_from = wide_of(from), *wide_to = wide_of(to);
    bool     ok = wide_from && wide_to && MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING);

    free(wide_from);
    free(wide_to);
    if (!ok)
        errno = EACCES;
    return ok;
}

/* Symbolic links are rare here, and are replaced. */
char *path_resolved(const char *path)
{
    (void)path;
    return NULL;
}

bool folder_make(const char *path)
{
    return _mkdir(path) == 0 || errno == EEXIST;
}

bool settings_folder(char *out, size_t room)
{
    const char *data = getenv("APPDATA");
    int         length = data ? snprintf(out, room, "%s", data) : -1;

    return length > 0 && (size_t)length < room;
}

const char *settings_variables(void)
{
    return "APPDATA";
}

/* What lies in the folder of the user's settings is the user's. */
void private_files_begin(void)
{
}

void private_files_end(void)
{
}

/* ---- addresses ---- */

size_t host_addresses(const char *host, char (*out)[ADDRESS_TEXT_BYTES], size_t most)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    size_t          count = 0;

    if (getaddrinfo(host, NULL, &hints, &list))
        return 0;
    for (const struct addrinfo *a = list; a && count < most; a = a->ai_next)
        count += getnameinfo(a->ai_addr, (int)a->ai_addrlen, out[count], ADDRESS_TEXT_BYTES, NULL, 0, NI_NUMERICHOST) == 0;
    freeaddrinfo(list);
    return count;
}

/* ---- text in memory ---- */

/* In a temporary file: streams in memory do not exist here. */
FILE *text_open(void)
{
    return tmpfile();
}

char *text_take(FILE *stream)
{
    long   length = fflush(stream) == 0 ? ftell(stream) : -1;
    size_t bytes = length >= 0 ? (size_t)length : 0;
    char  *text = length >= 0 ? malloc(bytes + 1) : NULL;
    bool   ok = text != NULL;

    if (ok) {
        rewind(stream);
        ok = fread(text, 1, bytes, stream) == bytes;
        text[bytes] = '\0';
    }
    fclose(stream);
    if (ok)
        return text;
    free(text);
    return NULL;
}

/* ---- the terminal ---- */

enum { KEYS, LEAVING, WAITED };

static struct {
    HANDLE waited[WAITED]; /* standard input, and an event that Ctrl-C sets */
    DWORD  before;
    bool   keys; /* standard input is a console and in our mode */
} screen;

bool terminal_colors(void)
{
    return escapes && _isatty(_fileno(stdout));
}

bool terminal_size(unsigned *rows, unsigned *columns)
{
    CONSOLE_SCREEN_BUFFER_INFO info;

    if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info))
        return false;
    *rows = (unsigned)(info.srWindow.Bottom - info.srWindow.Top + 1);
    *columns = (unsigned)(info.srWindow.Right - info.srWindow.Left + 1);
    return true;
}

static BOOL WINAPI on_leave(DWORD event)
{
    (void)event;
    return SetEvent(screen.waited[LEAVING]);
}

void terminal_enter(void)
{
    screen.waited[KEYS] = GetStdHandle(STD_INPUT_HANDLE);
    screen.waited[LEAVING] = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (screen.waited[LEAVING])
        SetConsoleCtrlHandler(on_leave, TRUE);
    screen.keys = GetConsoleMode(screen.waited[KEYS], &screen.before) != 0;
    if (screen.keys)
        SetConsoleMode(screen.waited[KEYS], (screen.before & ~(DWORD)(ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT)) | ENABLE_WINDOW_INPUT);
}

void terminal_leave(void)
{
    if (screen.keys)
        SetConsoleMode(screen.waited[KEYS], screen.before);
    if (!screen.waited[LEAVING])
        return;
    SetConsoleCtrlHandler(on_leave, FALSE);
    CloseHandle(screen.waited[LEAVING]);
}

/* What one record of the console's input means; TERMINAL_TIME_OVER: nothing. */
static enum terminal_event meaning_of(const INPUT_RECORD *record)
{
    wchar_t key = record->Event.KeyEvent.uChar.UnicodeChar;

    if (record->EventType == WINDOW_BUFFER_SIZE_EVENT)
        return TERMINAL_RESIZED;
    return record->EventType == KEY_EVENT && record->Event.KeyEvent.bKeyDown && (key == L'q' || key == L'Q') ? TERMINAL_LEAVE
                                                                                                             : TERMINAL_TIME_OVER;
}

enum terminal_event terminal_wait(unsigned seconds)
{
    ULONGLONG           until = GetTickCount64() + 1000ull * seconds, now;
    enum terminal_event event = TERMINAL_TIME_OVER;

    if (!screen.waited[LEAVING])
        return TERMINAL_LEAVE;
    while (event == TERMINAL_TIME_OVER && (now = GetTickCount64()) < until) {
        DWORD        first = screen.keys ? KEYS : LEAVING, got = 0;
        DWORD        which = WaitForMultipleObjects(WAITED - first, screen.waited + first, FALSE, (DWORD)(until - now));
        INPUT_RECORD record;

        if (which == WAIT_TIMEOUT)
            break;
        if (which - WAIT_OBJECT_0 + first != KEYS || !ReadConsoleInputW(screen.waited[KEYS], &record, 1, &got) || got == 0)
            return TERMINAL_LEAVE;
        event = meaning_of(&record);
    }
    return event;
}
