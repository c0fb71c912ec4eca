/* probe-dgemm: matrix products timed alone, one row a call, C(m x n) -= A(m x k) B(n x k)^T as in HPL's update.
 *
 * The operands lie at random places of two large pools, so that they are neither always in the cache nor always the
 * same pages, and hold random numbers: processors run faster on zeros. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_log.h"
#include "probe_common.h"

enum { MAX_DIMENSION = 1 << 24, WARM_UP_CALLS = 5, LINE = 8 /* doubles in a cache line */ };

typedef struct {
    const char *name;
    int m, n, k;
} gemm_row;

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

static gemm_row *read_rows(const lep_design *design) {
    size_t name = lep_design_column(design, "design_row"), kind = lep_design_column(design, "kind"),
           m = lep_design_column(design, "m"), n = lep_design_column(design, "n"), k = lep_design_column(design, "k");
    gemm_row *rows = calloc(design->rows, sizeof *rows);
    if (!rows)
        lep_fail("out of memory");
    for (size_t i = 0; i < design->rows; i++) {
        if (strcmp(lep_design_text(design, i, kind), "dgemm") != 0)
            lep_design_fail(design, i, "kind is '%s'; probe-dgemm runs dgemm", lep_design_text(design, i, kind));
        lep_design_integer(design, i, name, 0, 1000000000);
        rows[i] = (gemm_row){lep_design_text(design, i, name), (int)lep_design_integer(design, i, m, 1, MAX_DIMENSION),
                             (int)lep_design_integer(design, i, n, 1, MAX_DIMENSION),
                             (int)lep_design_integer(design, i, k, 1, MAX_DIMENSION)};
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

static pool make_pool(size_t doubles, lep_random *random) {
    size_t bytes = round_up(doubles) * sizeof(double);
    pool made = {aligned_alloc(64, bytes), round_up(doubles)};
    if (!made.memory)
        lep_fail("no memory for a pool of %.0f MB", (double)bytes * 1e-6);
    lep_random_fill(random, made.memory, made.doubles);
    return made;
}

static void call_dgemm(const gemm_row *row, const pool *inputs, const pool *outputs, lep_random *random) {
    const double *a = random_place(inputs, a_doubles(row), random);
    const double *b = random_place(inputs, b_doubles(row), random);
    double *c = random_place(outputs, c_doubles(row), random);
    int lda = (int)leading_dimension(row->m);
    int64_t start_ns = lep_now_ns();
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, row->m, row->n, row->k, -1.0, a, lda, b, row->n, 1.0, c, lda);
    int64_t end_ns = lep_now_ns();
    lep_log_add(LEP_dgemm, row->m, row->n, row->k, start_ns, end_ns);
}

int main(int argc, char **argv) {
    lep_self.name = "probe-dgemm";
    lep_option options[] = {
        {"--design", NULL, true, "table of dgemm rows"},
        {"--out", NULL, true, "raw file"},
        {"--cpu", NULL, true, "core to run on"},
        {"--seed", NULL, true, "of content and places of the operands"},
        {"--max-bytes", "1073741824", false, "most memory for operands"},
    };
    size_t count = sizeof options / sizeof options[0];
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    long long max_bytes = lep_option_integer(options, count, "--max-bytes", 1 << 20, INT64_MAX);
    int cpu = lep_option_cpu(options, count, "--cpu", 0);
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    gemm_row *rows = read_rows(&design);
    lep_pin(cpu);

    /* Room to move: twice the largest operand, and more than any cache, within the limit. */
    size_t input = 0, output = 0, limit = (size_t)max_bytes / sizeof(double);
    for (size_t i = 0; i < design.rows; i++) {
        size_t a = a_doubles(&rows[i]), b = b_doubles(&rows[i]), c = c_doubles(&rows[i]);
        if ((a > b ? a : b) + c > limit)
            lep_design_fail(&design, i, "operands of %.0f MB do not fit into --max-bytes %lld",
                            (double)((a > b ? a : b) + c) * 8e-6, max_bytes);
        input = a > input ? a : input;
        input = b > input ? b : input;
        output = c > output ? c : output;
    }
    if (input + output > limit)
        lep_fail("the largest operands, %.0f MB, do not fit into --max-bytes %lld", (double)(input + output) * 8e-6,
                 max_bytes);
    size_t spare = (limit - input - output) / 2, roomy = (size_t)128 << 20 >> 3;
    size_t input_wish = 2 * input > roomy ? 2 * input : roomy, output_wish = 2 * output > roomy ? 2 * output : roomy;
    lep_random random = lep_random_seeded((uint64_t)seed, 0);
    pool inputs = make_pool(input_wish - input < spare ? input_wish : input + spare, &random);
    pool outputs = make_pool(output_wish - output < spare ? output_wish : output + spare, &random);

    const char *path = lep_option_text(options, count, "--out");
    FILE *file = lep_output_open(path, NULL, seed, argc, argv);
    lep_output_note(file, "warmup_calls", "%d", WARM_UP_CALLS);
    lep_output_note(file, "pool_bytes", "%zu %zu", inputs.doubles * sizeof(double), outputs.doubles * sizeof(double));
    lep_output_columns(file, LEP_KERNEL_COLUMNS);

    lep_log_reserve(64);
    for (int i = 0; i < WARM_UP_CALLS; i++)
        call_dgemm(&(gemm_row){"-", 256, 256, 128}, &inputs, &outputs, &random);
    lep_calls.used = 0;
    for (size_t i = 0; i < design.rows; i++) {
        call_dgemm(&rows[i], &inputs, &outputs, &random);
        lep_log_write(file, rows[i].name, "dgemm", 0, cpu);
        if (i % 64 == 63)
            lep_output_flush(file, path);
    }
    lep_output_close(file, path);
    free(rows);
    return 0;
}
