/* probe-dgemm: matrix products timed alone, one row a call, C(m x n) -= A(m x k) B(n x k)^T as in HPL's update.
 *
 * The operands lie at random places of two large pools, so that they are neither always in the cache nor always the
 * same pages, and hold random numbers: processors run faster on zeros. Two optional columns of the design make
 * factors of that: `content` (each level has pools of its own) and `warm`, 1 for operands that the same call has just
 * used, untimed.
 *
 * With --cpus the same calls run on several cores at once, in a process each and without MPI: they start together, and
 * one that ends early goes on untimed until the last has ended, so that all calls have the same company. */
#include <cblas.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "content.h"
#include "kernel_log.h"
#include "probe_common.h"

enum { MAX_DIMENSION = 1 << 24, LINE = 8 /* doubles in a cache line */, MOST_CONTENTS = 32 };

typedef struct {
    const char *name;
    int m, n, k, warm;
    size_t content; /* of the list of contents */
} gemm_row;

static const gemm_row warm_up_row = {"-", 256, 256, 128, 0, 0};

typedef struct {
    const char *names[MOST_CONTENTS];
    lep_content values[MOST_CONTENTS];
    size_t count;
} content_list;

static size_t round_up(size_t value) {
    return (value + LINE - 1) / LINE * LINE;
}

/* As HPL chooses it: a multiple of 8 that is no power of two. */
static size_t leading_dimension(int rows) {
    size_t ld = round_up((size_t)rows);
    return (ld & (ld - 1)) == 0 ? ld + LINE : ld;
}

static size_t a_doubles(const gemm_row *row) {
    return round_up(leading_dimension(row->m) * (size_t)row->k);
}

static size_t b_doubles(const gemm_row *row) {
    return round_up((size_t)row->n * (size_t)row->k);
}

static size_t c_doubles(const gemm_row *row) {
    return round_up(leading_dimension(row->m) * (size_t)row->n);
}

/* Its place in the list, at the end of which it is put where it is new. */
static size_t content_of(const lep_design *design, size_t row, size_t column, content_list *contents) {
    const char *text = column < design->columns ? lep_design_text(design, row, column) : "random";
    for (size_t i = 0; i < contents->count; i++)
        if (strcmp(contents->names[i], text) == 0)
            return i;
    if (contents->count == MOST_CONTENTS)
        lep_design_fail(design, row, "more than %d contents; each takes memory of its own", MOST_CONTENTS);
    if (!lep_content_parse(text, &contents->values[contents->count]))
        lep_design_fail(design, row,
                        "content is '%s'; it is random, constant, constant:VALUE, sequential or masked:BITS", text);
    contents->names[contents->count] = text;
    return contents->count++;
}

static gemm_row *read_rows(const lep_design *design, content_list *contents) {
    size_t content = lep_design_find(design, "content"), warm = lep_design_find(design, "warm");
    size_t name = lep_design_column(design, "design_row"), kind = lep_design_column(design, "kind"),
           m = lep_design_column(design, "m"), n = lep_design_column(design, "n"), k = lep_design_column(design, "k");
    gemm_row *rows = lep_allocate(design->rows * sizeof *rows, "the design");
    for (size_t i = 0; i < design->rows; i++) {
        if (strcmp(lep_design_text(design, i, kind), "dgemm") != 0)
            lep_design_fail(design, i, "kind is '%s'; probe-dgemm runs dgemm", lep_design_text(design, i, kind));
        lep_design_integer(design, i, name, 0, 1000000000);
        rows[i] = (gemm_row){lep_design_text(design, i, name),
                             (int)lep_design_integer(design, i, m, 1, MAX_DIMENSION),
                             (int)lep_design_integer(design, i, n, 1, MAX_DIMENSION),
                             (int)lep_design_integer(design, i, k, 1, MAX_DIMENSION),
                             warm < design->columns ? (int)lep_design_integer(design, i, warm, 0, 1) : 0,
                             content_of(design, i, content, contents)};
    }
    return rows;
}

typedef struct {
    double *memory;
    size_t doubles;
} pool;

static double *random_place(const pool *from, size_t doubles, lep_random *random) {
    size_t places = (from->doubles - doubles) / LINE + 1;
    return from->memory + LINE * lep_random_below(random, places);
}

static pool make_pool(size_t doubles, const lep_content *content, lep_random *random) {
    size_t bytes = round_up(doubles) * sizeof(double);
    pool made = {aligned_alloc(64, bytes), round_up(doubles)};
    if (!made.memory)
        lep_fail_alone("no memory for a pool of %.0f MB", (double)bytes * 1e-6);
    lep_content_fill(content, random, made.memory, made.doubles);
    return made;
}

static void call_dgemm(const gemm_row *row, const pool *inputs, const pool *outputs, lep_random *random) {
    const double *a = random_place(inputs, a_doubles(row), random);
    const double *b = random_place(inputs, b_doubles(row), random);
    double *c = random_place(outputs, c_doubles(row), random);
    int lda = (int)leading_dimension(row->m);
    if (row->warm)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, row->m, row->n, row->k, -1.0, a, lda, b, row->n, 1.0, c,
                    lda);
    LEP_LOGGED(LEP_dgemm, row->m, row->n, row->k,
               cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, row->m, row->n, row->k, -1.0, a, lda, b, row->n,
                           1.0, c, lda));
}

/* In memory that all processes share: how many have come to their first call, and to the end of their last. */
typedef struct {
    atomic_int ready, ended;
} meeting;

/* Asleep, so that those that still prepare have the machine to themselves. */
static void wait_for_all(atomic_int *count, int processes) {
    const struct timespec moment = {0, 200000};
    atomic_fetch_add(count, 1);
    while (atomic_load(count) < processes)
        nanosleep(&moment, NULL);
}

typedef struct {
    const lep_design *design;
    const content_list *contents;
    const gemm_row *rows;
    const char *path; /* of the raw file; process r of several writes PATH.r<r> */
    long long seed, max_bytes;
    int warmup_calls, processes, threads;
    bool bound;
    int argc;
    char **argv;
} task;

/* To hold the operands of a row. */
static void stretch(const gemm_row *row, size_t *input, size_t *output) {
    size_t a = a_doubles(row), b = b_doubles(row), c = c_doubles(row), larger = a > b ? a : b;
    *input = larger > *input ? larger : *input;
    *output = c > *output ? c : *output;
}

/* The sizes of the two pools of each content, in doubles: room to move, that is twice the largest operand and more than
 * any cache, within the limit. */
static void pool_sizes(const task *all, size_t *input_size, size_t *output_size) {
    size_t input = 0, output = 0, contents = all->contents->count;
    size_t limit = contents > 0 ? (size_t)all->max_bytes / sizeof(double) / contents : 0;
    for (size_t i = 0; i < all->design->rows; i++) {
        size_t a = a_doubles(&all->rows[i]), b = b_doubles(&all->rows[i]), c = c_doubles(&all->rows[i]);
        if ((a > b ? a : b) + c > limit)
            lep_design_fail(all->design, i, "operands of %.0f MB do not fit into --max-bytes %lld",
                            (double)((a > b ? a : b) + c) * 8e-6, all->max_bytes);
        stretch(&all->rows[i], &input, &output);
    }
    if (all->warmup_calls > 0) /* they take place in the same pools */
        stretch(&warm_up_row, &input, &output);
    if (input + output > limit)
        lep_fail("the largest operands, %.0f MB, do not fit into --max-bytes %lld", (double)(input + output) * 8e-6,
                 all->max_bytes);
    size_t spare = (limit - input - output) / 2, roomy = (size_t)128 << 20 >> 3;
    size_t input_wish = 2 * input > roomy ? 2 * input : roomy, output_wish = 2 * output > roomy ? 2 * output : roomy;
    *input_size = input_wish - input < spare ? input_wish : input + spare;
    *output_size = output_wish - output < spare ? output_wish : output + spare;
}

/* What one process does; cpus: those of its threads. */
static void run_process(const task *all, const int *cpus, meeting *others) {
    if (all->bound && all->threads > 1)
        lep_pin_threads(cpus, all->threads);
    else if (all->bound)
        lep_pin(cpus[0]);
    size_t input_size, output_size;
    pool_sizes(all, &input_size, &output_size);
    lep_random random = lep_random_seeded((uint64_t)all->seed, (uint64_t)lep_self.rank);
    pool inputs[MOST_CONTENTS] = {{NULL, 0}}, outputs[MOST_CONTENTS] = {{NULL, 0}};
    for (size_t i = 0; i < all->contents->count; i++) {
        inputs[i] = make_pool(input_size, &all->contents->values[i], &random);
        outputs[i] = make_pool(output_size, &all->contents->values[i], &random);
    }

    size_t room = strlen(all->path) + 16;
    char *path = malloc(room);
    if (!path)
        lep_fail_alone("out of memory");
    snprintf(path, room, others ? "%s.r%d" : "%s", all->path, lep_self.rank);
    FILE *file = lep_output_open(path, NULL, all->seed, all->argc, all->argv);
    lep_output_note(file, "warmup_calls", "%d", all->warmup_calls);
    lep_output_note(file, "pool_bytes", "%zu %zu", round_up(input_size) * sizeof(double),
                    round_up(output_size) * sizeof(double));
    lep_output_note(file, "threads", "%d", all->threads);
    const lep_design *design = all->design;
    bool conditions =
        lep_design_find(design, "content") < design->columns || lep_design_find(design, "warm") < design->columns;
    lep_output_columns(file, conditions ? LEP_KERNEL_COLUMNS ",content,warm" : LEP_KERNEL_COLUMNS);

    lep_log_reserve(64);
    for (int i = 0; i < all->warmup_calls; i++) {
        call_dgemm(&warm_up_row, &inputs[0], &outputs[0], &random);
        lep_calls.used = 0;
    }
    if (others)
        wait_for_all(&others->ready, all->processes);
    for (size_t i = 0; i < design->rows; i++) {
        const gemm_row *row = &all->rows[i];
        call_dgemm(row, &inputs[row->content], &outputs[row->content], &random);
        char more[64] = "";
        if (conditions)
            snprintf(more, sizeof more, ",%s,%d", all->contents->names[row->content], row->warm);
        lep_log_write(file, row->name, "dgemm", lep_self.rank, all->bound ? cpus[0] : sched_getcpu(), more);
        if (i % 64 == 63)
            lep_output_flush(file, path);
    }
    lep_output_close(file, path);
    free(path);
    if (!others)
        return;
    atomic_fetch_add(&others->ended, 1);
    for (size_t i = 0; atomic_load(&others->ended) < all->processes; i = (i + 1) % design->rows) {
        call_dgemm(&all->rows[i], &inputs[all->rows[i].content], &outputs[all->rows[i].content], &random);
        lep_calls.used = 0;
    }
}

/* One process for each `threads` of the cpus; when one fails all end. */
static int run_processes(const task *all, const int *cpus) {
    meeting *others = mmap(NULL, sizeof *others, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *started = calloc((size_t)all->processes, sizeof *started);
    if (others == MAP_FAILED || !started)
        lep_fail("out of memory");
    int status = 0;
    for (int process = 0; process < all->processes && status == 0; process++) {
        started[process] = fork();
        if (started[process] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            lep_self.rank = process;
            run_process(all, cpus + (ptrdiff_t)process * all->threads, others);
            exit(0);
        }
        if (started[process] < 0) {
            fprintf(stderr, "probe-dgemm: process %d cannot be started (%s)\n", process, strerror(errno));
            status = 2;
        }
    }
    for (int code; status == 0 && wait(&code) > 0;)
        status = code == 0 ? 0 : 2;
    for (int process = 0; process < all->processes && status != 0; process++)
        if (started[process] > 0)
            kill(started[process], SIGKILL);
    while (wait(NULL) > 0)
        ;
    free(started);
    return status;
}

int main(int argc, char **argv) {
    lep_self.name = "probe-dgemm";
    lep_option options[] = {
        {"--design", NULL, true, "table of dgemm rows"},
        {"--out", NULL, true, "raw file"},
        {"--cpu", "", false, "core to run on, or any: not bound, the scheduler's choice"},
        {"--cpus", "", false, "in place of --cpu: cores to run on at once; process r writes FILE.r<r>"},
        {"--threads", "1", false, "cores of a process, all of which its BLAS is to use"},
        {"--seed", NULL, true, "of content and places of the operands"},
        {"--max-bytes", "1073741824", false, "most memory for operands of a process, all contents together"},
        {"--warmup-calls", "5", false, "untimed calls before the first row"},
    };
    size_t count = sizeof options / sizeof options[0];
    lep_options_read(options, count, argc, argv);
    const char *cpu = lep_option_text(options, count, "--cpu"), *cpus = lep_option_text(options, count, "--cpus");
    bool several = *cpus != '\0', bound = strcmp(cpu, "any") != 0;
    if (several == (*cpu != '\0'))
        lep_fail("give --cpu or --cpus, one of the two");
    int threads = (int)lep_option_integer(options, count, "--threads", 1, CPU_SETSIZE), cores[CPU_SETSIZE] = {-1};
    int length = several ? lep_option_length(options, count, "--cpus") : 1;
    if ((threads > 1 && !several) || length % threads != 0 || length > CPU_SETSIZE)
        lep_fail("%d cores do not give each process %d; name them all in --cpus", length, threads);
    for (int i = 0; i < length && bound; i++)
        cores[i] = lep_option_cpu(options, count, several ? "--cpus" : "--cpu", i);
    task all = {.path = lep_option_text(options, count, "--out"),
                .seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX),
                .max_bytes = lep_option_integer(options, count, "--max-bytes", 1 << 20, INT64_MAX),
                .warmup_calls = (int)lep_option_integer(options, count, "--warmup-calls", 0, 1000000),
                .processes = length / threads,
                .threads = threads,
                .bound = bound,
                .argc = argc,
                .argv = argv};
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    content_list contents = {.count = 0};
    gemm_row *rows = read_rows(&design, &contents);
    all.design = &design;
    all.contents = &contents;
    all.rows = rows;
    int status = 0;
    if (several)
        status = run_processes(&all, cores);
    else
        run_process(&all, cores, NULL);
    free(rows);
    return status;
}
