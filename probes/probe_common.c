#include "probe_common.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Weak: probe-p2p links no BLAS, and another BLAS than OpenBLAS has none of these. */
extern char *openblas_get_config(void) __attribute__((weak));
extern char *openblas_get_corename(void) __attribute__((weak));

lep_process lep_self = {"probe", 0, NULL, NULL};

static void print_message(const char *place, const char *format, va_list values) {
    char message[2048];
    vsnprintf(message, sizeof message, format, values);
    /* One call, so that lines of several ranks do not mix. */
    fprintf(stderr, "%s: %s%s\n", lep_self.name, place, message);
    fflush(stderr);
}

static _Noreturn void leave_orderly(void) {
    if (lep_self.leave)
        lep_self.leave();
    exit(2);
}

_Noreturn void lep_fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (lep_self.rank == 0)
        print_message("", format, values);
    va_end(values);
    leave_orderly();
}

_Noreturn void lep_fail_alone(const char *format, ...) {
    va_list values;
    va_start(values, format);
    print_message("", format, values);
    va_end(values);
    if (lep_self.abort_all)
        lep_self.abort_all(2);
    exit(2);
}

static bool parse_integer(const char *text, long long *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static _Noreturn void print_help(const lep_option *options, size_t count) {
    if (lep_self.rank == 0) {
        printf("usage: %s OPTIONS\n", lep_self.name);
        for (size_t i = 0; i < count; i++)
            printf("  %-12s %s%s%s%s%s\n", options[i].name, options[i].help, options[i].required ? " (required)" : "",
                   options[i].value ? " (default: " : "", options[i].value ? options[i].value : "",
                   options[i].value ? ")" : "");
    }
    if (lep_self.leave)
        lep_self.leave();
    exit(0);
}

static size_t find_option(const lep_option *options, size_t count, const char *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
            return i;
    return count;
}

void lep_options_read(lep_option *options, size_t count, int argc, char **argv) {
    bool given[64] = {false};
    if (count > 64)
        lep_fail("more than 64 options");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            print_help(options, count);
        const char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
        size_t length = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        size_t option = find_option(options, count, argv[i], length);
        if (option == count)
            lep_fail("unknown option '%s'; --help lists those that exist", argv[i]);
        if (given[option])
            lep_fail("option %s is given twice", options[option].name);
        if (!equals && i + 1 == argc)
            lep_fail("option %s wants a value", options[option].name);
        given[option] = true;
        options[option].value = equals ? equals + 1 : argv[++i];
    }
    for (size_t i = 0; i < count; i++)
        if (options[i].required && !given[i])
            lep_fail("option %s is missing", options[i].name);
}

const char *lep_option_text(const lep_option *options, size_t count, const char *name) {
    size_t option = find_option(options, count, name, strlen(name));
    return option < count ? options[option].value : NULL;
}

/* The place of a text among words, or -1 and the words as they are listed. */
static int find_word(const char *text, const char *const *words, int number, char *listed, size_t room) {
    for (int i = 0; i < number; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
        size_t used = strlen(listed);
        snprintf(listed + used, room - used, "%s%s", i == 0 ? "" : i + 1 == number ? " or " : ", ", words[i]);
    }
    return -1;
}

int lep_option_choice(const lep_option *options, size_t count, const char *name, const char *const *words, int number) {
    char listed[256] = "";
    const char *text = lep_option_text(options, count, name);
    int place = find_word(text, words, number, listed, sizeof listed);
    if (place < 0)
        lep_fail("option %s is '%s'; it is %s", name, text, listed);
    return place;
}

long long lep_option_integer(const lep_option *options, size_t count, const char *name, long long low, long long high) {
    const char *text = lep_option_text(options, count, name);
    long long value;
    if (!text || !parse_integer(text, &value) || value < low || value > high)
        lep_fail("option %s is '%s'; it wants an integer from %lld to %lld", name, text ? text : "", low, high);
    return value;
}

int lep_option_cpu(const lep_option *options, size_t count, const char *name, int index) {
    const char *text = lep_option_text(options, count, name);
    const char *item = text;
    for (int i = 0; i < index; i++) {
        item = strchr(item, ',');
        if (!item)
            lep_fail("option %s is '%s', which names no core for rank %d", name, text, index);
        item++;
    }
    char *end;
    long cpu = strtol(item, &end, 10);
    if (end == item || (*end != '\0' && *end != ',') || cpu < 0 || cpu >= CPU_SETSIZE)
        lep_fail("option %s is '%s'; it wants core numbers such as 0,1", name, text);
    return (int)cpu;
}

int lep_option_length(const lep_option *options, size_t count, const char *name) {
    int length = 1;
    for (const char *text = lep_option_text(options, count, name); (text = strchr(text, ',')); text++)
        length++;
    return length;
}

int lep_compare_int64(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

double lep_clock_cost_s(void) {
    enum { PAIRS = 2001, PER_SAMPLE = 16 };
    static int64_t cost[PAIRS];
    /* A stamp's nanoseconds are integers, too coarse for a cost of some twenty: the mean of 16 pairs is not. */
    for (int i = 0; i < PAIRS; i++) {
        int64_t sum = 0;
        for (int j = 0; j < PER_SAMPLE; j++) {
            int64_t start = lep_now_ns();
            sum += lep_now_ns() - start;
        }
        cost[i] = sum;
    }
    qsort(cost, PAIRS, sizeof cost[0], lep_compare_int64);
    const size_t middle = PAIRS / 2;
    return (double)cost[middle] / PER_SAMPLE * 1e-9;
}

void lep_pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        lep_fail_alone("cannot be bound to core %d (%s); choose a core of this machine that the process may use", cpu,
                       strerror(errno));
}

void lep_pin_threads(const int *cpus, int count) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET(cpus[i], &set);
    DIR *threads = opendir("/proc/self/task");
    if (!threads)
        lep_fail_alone("/proc/self/task cannot be read (%s)", strerror(errno));
    for (const struct dirent *entry; (entry = readdir(threads));) {
        long long thread;
        /* One that has ended meanwhile needs no core. */
        if (parse_integer(entry->d_name, &thread) && sched_setaffinity((pid_t)thread, sizeof set, &set) != 0 &&
            errno != ESRCH)
            lep_fail_alone(
                "a thread cannot be bound to %d cores from %d on (%s); choose cores that the process may use", count,
                cpus[0], strerror(errno));
    }
    closedir(threads);
}

lep_random lep_random_seeded(uint64_t seed, uint64_t stream) {
    /* splitmix64's finaliser, twice: neighbouring seeds and streams must not give neighbouring states. */
    uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + stream + 1;
    for (int i = 0; i < 2; i++) {
        x += UINT64_C(0x9E3779B97F4A7C15);
        x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
        x ^= x >> 31;
    }
    return (lep_random){x ? x : 1};
}

void lep_random_fill(lep_random *random, double *values, size_t count) {
    lep_random local = *random; /* a register, not memory, in the loop */
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(lep_random_bits(&local) >> 11) * 0x1.0p-53 - 0.5;
    *random = local;
}

static char *read_whole_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file)
        lep_fail("%s: cannot be read (%s)", path, strerror(errno));
    size_t room = 1 << 16, used = 0, got;
    char *text = malloc(room + 1);
    while (text && (got = fread(text + used, 1, room - used, file)) > 0) {
        used += got;
        if (used == room) {
            char *larger = realloc(text, (room *= 2) + 1);
            if (!larger)
                free(text);
            text = larger;
        }
    }
    if (!text)
        lep_fail("%s: no memory to read it", path);
    if (ferror(file))
        lep_fail("%s: cannot be read (%s)", path, strerror(errno));
    fclose(file);
    text[used] = '\0';
    *length = used;
    return text;
}

static size_t count_cells(const char *line) {
    size_t cells = 1;
    for (; *line; line++)
        cells += *line == ',';
    return cells;
}

static void split_cells(char *line, char **cells) {
    for (*cells++ = line; (line = strchr(line, ',')); *cells++ = line)
        *line++ = '\0';
}

static void *must_have(void *memory) {
    if (!memory)
        lep_fail("out of memory");
    return memory;
}

lep_design lep_design_read(const char *path) {
    lep_design design = {.path = path};
    size_t length;
    design.text = read_whole_file(path, &length);
    if (strlen(design.text) != length)
        lep_fail("%s: holds a zero byte; a design table is text", path);
    size_t room = 0;
    int number = 0;
    for (char *line = design.text, *next; line; line = next) {
        number++;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        size_t end = strlen(line);
        while (end && (line[end - 1] == '\r' || line[end - 1] == ' '))
            line[--end] = '\0';
        if (end == 0 || line[0] == '#')
            continue;
        if (!design.names) {
            design.columns = count_cells(line);
            design.names = must_have(calloc(design.columns, sizeof *design.names));
            split_cells(line, design.names);
            continue;
        }
        if (count_cells(line) != design.columns)
            lep_fail("%s:%d: has %zu cells, the header has %zu", path, number, count_cells(line), design.columns);
        if (design.rows == room) {
            room = room ? 2 * room : 256;
            design.cells = must_have(realloc(design.cells, room * design.columns * sizeof *design.cells));
            design.lines = must_have(realloc(design.lines, room * sizeof *design.lines));
        }
        design.lines[design.rows] = number;
        split_cells(line, design.cells + design.rows * design.columns);
        design.rows++;
    }
    if (!design.names)
        lep_fail("%s: has no header row", path);
    if (!design.rows)
        lep_fail("%s: has no design rows", path);
    return design;
}

size_t lep_design_find(const lep_design *design, const char *name) {
    size_t i = 0;
    while (i < design->columns && strcmp(design->names[i], name) != 0)
        i++;
    return i;
}

size_t lep_design_column(const lep_design *design, const char *name) {
    size_t found = lep_design_find(design, name);
    if (found < design->columns)
        return found;
    lep_fail("%s: has no column '%s'", design->path, name);
}

const char *lep_design_text(const lep_design *design, size_t row, size_t column) {
    return design->cells[row * design->columns + column];
}

long long lep_design_integer(const lep_design *design, size_t row, size_t column, long long low, long long high) {
    const char *text = lep_design_text(design, row, column);
    long long value;
    if (!parse_integer(text, &value) || value < low || value > high)
        lep_design_fail(design, row, "%s is '%s'; it wants an integer from %lld to %lld", design->names[column], text,
                        low, high);
    return value;
}

int lep_design_choice(const lep_design *design, size_t row, size_t column, const char *const *words, int number) {
    char listed[256] = "";
    const char *text = lep_design_text(design, row, column);
    int place = find_word(text, words, number, listed, sizeof listed);
    if (place < 0)
        lep_design_fail(design, row, "%s is '%s'; it is %s", design->names[column], text, listed);
    return place;
}

_Noreturn void lep_design_fail(const lep_design *design, size_t row, const char *format, ...) {
    char place[1024];
    snprintf(place, sizeof place, "%s:%d: ", design->path, design->lines[row]);
    va_list values;
    va_start(values, format);
    if (lep_self.rank == 0)
        print_message(place, format, values);
    va_end(values);
    leave_orderly();
}

/* A header value must stay on its line. */
static void write_one_line(FILE *file, const char *text) {
    for (; *text; text++)
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, file);
}

static void write_key(FILE *file, const char *key, const char *value) {
    fprintf(file, "#@%s=", key);
    write_one_line(file, value);
    fputc('\n', file);
}

FILE *lep_output_open(const char *path, const char *mpi, long long seed, int argc, char **argv) {
    FILE *file = fopen(path, "w");
    if (!file)
        lep_fail_alone("%s: cannot be written (%s)", path, strerror(errno));
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    char host[256] = "unknown";
    gethostname(host, sizeof host - 1);
    write_key(file, "generator", lep_self.name);
    write_key(file, "version", LEPAUTE_VERSION);
    write_key(file, "clock", "CLOCK_MONOTONIC");
    fprintf(file, "#@clock_cost_s=%.4e\n", lep_clock_cost_s());
    write_key(file, "mpi", mpi ? mpi : "none");
    write_key(file, "blas_config", openblas_get_config ? openblas_get_config() : "none");
    write_key(file, "blas_core", openblas_get_corename ? openblas_get_corename() : "none");
    write_key(file, "host", host);
    fprintf(file, "#@seed=%lld\n", seed);
    fprintf(file, "#@rank=%d\n", lep_self.rank);
    fputs("#@options=", file);
    for (int i = 1; i < argc; i++) {
        write_one_line(file, argv[i]);
        fputc(i + 1 < argc ? ' ' : '\n', file);
    }
    if (argc <= 1)
        fputc('\n', file);
    return file;
}

void lep_output_note(FILE *file, const char *key, const char *format, ...) {
    char value[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(value, sizeof value, format, values);
    va_end(values);
    write_key(file, key, value);
}

void lep_output_columns(FILE *file, const char *columns) {
    fprintf(file, "%s\n", columns);
}

void lep_output_flush(FILE *file, const char *path) {
    if (fflush(file) != 0 || ferror(file))
        lep_fail_alone("%s: cannot be written (%s)", path, strerror(errno));
}

void lep_output_close(FILE *file, const char *path) {
    lep_output_flush(file, path);
    if (fclose(file) != 0)
        lep_fail_alone("%s: cannot be written (%s)", path, strerror(errno));
}

void *lep_allocate(size_t bytes, const char *what) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        lep_fail_alone("no memory for %s (%.1f MB)", what, (double)bytes * 1e-6);
    memset(memory, 1, bytes);
    return memory;
}
