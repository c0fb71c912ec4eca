/* probe-hpl-steps: the kernels of HPL, each timed where HPL calls it.
 *
 * A kernel timed alone, on operands that nothing else has touched, is not the kernel of a run: caches, the leading
 * dimension and the calls before it differ. Here a design row is a few consecutive steps of HPL on a trailing matrix
 * of the wanted size, with HPL's own routines: factor a panel, update the first columns in chunks, update the rest; at
 * the end solve a triangular system in that matrix, as a run does once.
 * All ranks form one process column (Q = 1), so that nothing waits for a panel broadcast; with --grid single each rank
 * is a grid of its own and all do the same steps at once, which is what a process row of a run does to the memory.
 * In each row those start together, and go on untimed until the last has ended.
 * Before the first row all ranks write to fresh memory, timed: what a run pays for its workspaces once.
 */
#include <hpl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_log.h"
#include "kernel_wraps.h"
#include "probe_common.h"
#include "probe_mpi.h"

typedef struct {
    const char *name; /* design_row as text, copied to the rows */
    int m, n, nb, chunks, steps;
} step_row;

enum { ALIGN = 8, MAX_ORDER = 1 << 24 };

/* Pieces of fresh memory, each of 64 KiB times a factor below 2^DOUBLINGS. */
enum { PIECES = 12, LEAST_PIECE = 1 << 16, DOUBLINGS = 7 };

/* What is set up at first use (threads and buffers of the BLAS, connections of MPI) is no kernel's time. */
static const step_row warm_up = {"-", 512, 512, 64, 1, 2};
/* Ten megabytes in some ten milliseconds, for ranks that others do not wait for. */
static const step_row between = {"-", 1536, 832, 64, 1, 2};

static step_row *read_rows(const lep_design *design) {
    size_t name = lep_design_column(design, "design_row"), kind = lep_design_column(design, "kind"),
           m = lep_design_column(design, "m"), n = lep_design_column(design, "n"), nb = lep_design_column(design, "nb"),
           chunks = lep_design_column(design, "chunks"), steps = lep_design_column(design, "steps");
    step_row *rows = lep_allocate(design->rows * sizeof *rows, "the design");
    for (size_t i = 0; i < design->rows; i++) {
        if (strcmp(lep_design_text(design, i, kind), "hpl_step") != 0)
            lep_design_fail(design, i, "kind is '%s'; probe-hpl-steps runs hpl_step", lep_design_text(design, i, kind));
        lep_design_integer(design, i, name, 0, 1000000000);
        step_row row = {.name = lep_design_text(design, i, name),
                        .m = (int)lep_design_integer(design, i, m, 1, MAX_ORDER),
                        .n = (int)lep_design_integer(design, i, n, 1, MAX_ORDER),
                        .nb = (int)lep_design_integer(design, i, nb, 1, 4096),
                        .chunks = (int)lep_design_integer(design, i, chunks, 0, 10000),
                        .steps = (int)lep_design_integer(design, i, steps, 1, 10000)};
        if ((long long)row.n < (long long)(row.steps + row.chunks) * row.nb)
            lep_design_fail(design, i, "n is %d; %d steps and %d chunks of nb = %d columns want n >= %lld", row.n,
                            row.steps, row.chunks, row.nb, (long long)(row.steps + row.chunks) * row.nb);
        if ((long long)row.m < (long long)row.steps * row.nb)
            lep_design_fail(design, i, "m is %d; %d steps of nb = %d want m >= %lld", row.m, row.steps, row.nb,
                            (long long)row.steps * row.nb);
        rows[i] = row;
    }
    return rows;
}

static const HPL_T_FACT factorisations[] = {HPL_LEFT_LOOKING, HPL_CROUT, HPL_RIGHT_LOOKING};

static int factorisation(const lep_option *options, size_t count, const char *option) {
    static const char *const names[] = {"left", "crout", "right"};
    return lep_option_choice(options, count, option, names, 3);
}

static HPL_T_SWAP swapping(const lep_option *options, size_t count) {
    static const char *const names[] = {"binary-exchange", "spread-roll", "mix"};
    static const HPL_T_SWAP values[] = {HPL_SWAP00, HPL_SWAP01, HPL_SW_MIX};
    return values[lep_option_choice(options, count, "--swap", names, 3)];
}

static bool is_transposed(const lep_option *options, size_t count, const char *option) {
    static const char *const names[] = {"transposed", "no-transposed"};
    return lep_option_choice(options, count, option, names, 2) == 0;
}

/* HPL keeps the swap, its threshold and the equilibration of the first update of a process. */
static HPL_T_palg read_algorithm(const lep_option *options, size_t count) {
    HPL_T_palg algorithm = {.btopo = HPL_2RING, .depth = 0, .align = ALIGN};
    algorithm.equil = (int)lep_option_integer(options, count, "--equil", 0, 1);
    algorithm.nbmin = (int)lep_option_integer(options, count, "--nbmin", 1, 4096);
    algorithm.nbdiv = (int)lep_option_integer(options, count, "--ndiv", 2, 64);
    int pfact = factorisation(options, count, "--pfact"), rfact = factorisation(options, count, "--rfact");
    algorithm.pfact = factorisations[pfact];
    algorithm.rfact = factorisations[rfact];
    algorithm.fswap = swapping(options, count);
    algorithm.fsthr = (int)lep_option_integer(options, count, "--swap-threshold", 0, MAX_ORDER);
    bool l1 = is_transposed(options, count, "--l1");
    bool u = is_transposed(options, count, "--u");
    static const HPL_T_PFA_FUN panels[][2] = {
        {HPL_pdpanllN, HPL_pdpanllT}, {HPL_pdpancrN, HPL_pdpancrT}, {HPL_pdpanrlN, HPL_pdpanrlT}};
    static const HPL_T_RFA_FUN recursive[][2] = {
        {HPL_pdrpanllN, HPL_pdrpanllT}, {HPL_pdrpancrN, HPL_pdrpancrT}, {HPL_pdrpanrlN, HPL_pdrpanrlT}};
    algorithm.pffun = panels[pfact][l1];
    algorithm.rffun = recursive[rfact][l1];
    algorithm.upfun = l1 ? (u ? HPL_pdupdateTT : HPL_pdupdateTN) : (u ? HPL_pdupdateNT : HPL_pdupdateNN);
    return algorithm;
}

static void write_options(FILE *file, const lep_option *options, size_t count) {
    static const char *const names[] = {"--nbmin", "--ndiv", "--pfact", "--rfact",          "--l1",
                                        "--u",     "--swap", "--equil", "--swap-threshold", NULL};
    char text[512] = "";
    for (const char *const *name = names; *name; name++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s=%s", used ? " " : "", *name + 2,
                 lep_option_text(options, count, *name));
    }
    lep_output_note(file, "hpl_options", "%s", text);
}

/* HPL's leading dimension: a multiple of the alignment that is no power of two, which would put all elements of a row
 * into the same few sets of the cache. */
static int leading_dimension(int local_rows) {
    int ld = ((local_rows > 1 ? local_rows : 1) + ALIGN - 1) / ALIGN * ALIGN;
    return (ld & (ld - 1)) == 0 ? ld + ALIGN : ld;
}

static int local_rows(const HPL_T_grid *grid, const step_row *row) {
    return HPL_numroc(row->m, row->nb, row->nb, grid->myrow, 0, grid->nprow);
}

/* As HPL allocates: (ld + 1) doubles for each of the n + 1 columns, and room to align. */
static size_t matrix_doubles(const HPL_T_grid *grid, const step_row *row) {
    return ALIGN + (size_t)(leading_dimension(local_rows(grid, row)) + 1) * (size_t)(row->n + 1);
}

/* More than HPL makes: about 11 calls a column in the leaves of the panel, four a node of its recursion (fewer than
 * columns), a few a call of the update. */
static size_t most_calls(const step_row *row) {
    size_t blocks = (size_t)(row->m < row->n ? row->m : row->n) / (size_t)row->nb + 1;
    return (size_t)row->steps * ((size_t)row->nb * 32 + ((size_t)row->chunks + 1) * 64 + 64) + blocks * 8 + 8;
}

/* The system gives out memory page by page when it is first written. All pieces stay until the end, so that none is
 * made of the pages of one before it, which the caches still hold. */
static void touch_fresh_memory(lep_random *random) {
    char *pieces[PIECES];
    size_t bytes[PIECES], page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < PIECES; i++) {
        size_t least = (size_t)LEAST_PIECE << lep_random_below(random, DOUBLINGS);
        bytes[i] = (least + lep_random_below(random, least) + page - 1) / page * page;
        pieces[i] = mmap(NULL, bytes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pieces[i] == MAP_FAILED)
            lep_fail_alone("no memory for a piece of %.1f MB", (double)bytes[i] * 1e-6);
    }
    lep_calls.position = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < PIECES; i++) {
        volatile char *memory = pieces[i];
        LEP_LOGGED(LEP_first_touch, 0, (int)bytes[i], 0, for (size_t at = 0; at < bytes[i]; at += page) memory[at] = 1);
    }
    for (int i = 0; i < PIECES; i++)
        munmap(pieces[i], bytes[i]);
}

static void factor(HPL_T_panel *panel) {
    int rows = panel->mp;
    lep_inside_pdfact = true;
    LEP_LOGGED(LEP_pdfact, rows, panel->jb, 0, HPL_pdfact(panel));
    lep_inside_pdfact = false;
}

/* Whether the swap by binary exchange calls dlaswp05 by itself: ranks beyond the power of two get all of U, and take
 * their rows from it. */
static bool takes_rows_from_u(const HPL_T_grid *grid) {
    return (grid->nprow & (grid->nprow - 1)) != 0;
}

/* dlaswp05 as such ranks call it, timed apart where the grid has none of them. The rows are drawn anew, and U is first
 * given what they hold, which leaves the matrix as it is and the caches as dlaswp02 and the messages leave them. */
static void take_rows_from_u(const HPL_T_palg *algorithm, const HPL_T_panel *panel, double *a, int columns,
                             lep_random *random) {
    int width = panel->jb, most = width < panel->mp ? width : panel->mp;
    if (most < 2 || columns < 1)
        return;
    int count = 1 + (int)lep_random_below(random, (uint64_t)most / 2), from[width], to[count];
    for (int i = 0; i < width; i++)
        from[i] = i;
    bool transposed = algorithm->upfun == HPL_pdupdateTT || algorithm->upfun == HPL_pdupdateNT;
    for (int i = 0; i < count; i++) {
        int other = i + (int)lep_random_below(random, (uint64_t)(width - i)), drawn = from[other];
        from[other] = from[i];
        from[i] = drawn;
        to[i] = (int)lep_random_below(random, (uint64_t)panel->mp);
        for (int j = 0; j < columns; j++)
            *(transposed ? Mptr(panel->U, j, drawn, columns) : Mptr(panel->U, drawn, j, width)) =
                *Mptr(a, to[i], j, panel->lda);
    }
    if (transposed)
        HPL_dlaswp05T(count, columns, a, panel->lda, panel->U, columns, to, from);
    else
        HPL_dlaswp05N(count, columns, a, panel->lda, panel->U, width, to, from);
}

static void update(HPL_T_palg *algorithm, HPL_T_panel *panel, int columns, lep_random *random) {
    double *a = panel->A;
    int rows = panel->mp - (panel->grid->myrow == panel->prow ? panel->jb : 0);
    int before = panel->nq;
    LEP_LOGGED(LEP_pdupdate, rows, before - panel->nq, panel->jb, algorithm->upfun(NULL, NULL, panel, columns));
    if (panel->grid->nprow > 1 && algorithm->fswap != HPL_SWAP01 && !takes_rows_from_u(panel->grid))
        take_rows_from_u(algorithm, panel, a, before - panel->nq, random);
}

/* The upper triangle of what the steps have left is no factor of anything, and its solution may overflow: that takes
 * no other time. With Q = 1 nothing is received from another column, so the sums of such messages are timed apart. */
static void solve(HPL_T_grid *grid, HPL_T_pmat matrix, const step_row *row) {
    matrix.n = row->m < row->n ? row->m : row->n;
    LEP_LOGGED(LEP_pdtrsv, matrix.mp, matrix.n, 0, HPL_pdtrsv(grid, &matrix));
    for (int length = row->nb; length <= matrix.mp && length <= 4 * row->nb; length += row->nb)
        HPL_daxpy(length, HPL_rone, matrix.A, 1, Mptr(matrix.A, 0, 1, matrix.ld), 1);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): HPL writes there */
static void run_row(HPL_T_grid *grid, HPL_T_palg *algorithm, const step_row *row, double *memory, lep_random *random) {
    HPL_T_pmat matrix = {.n = row->n, .nb = row->nb, .nq = row->n + 1, .mp = local_rows(grid, row)};
    matrix.ld = leading_dimension(matrix.mp);
    matrix.A = (double *)HPL_PTR(memory, ALIGN * sizeof(double));
    matrix.X = Mptr(matrix.A, 0, matrix.nq, matrix.ld);
    lep_random_fill(random, matrix.A, (size_t)matrix.ld * (size_t)matrix.nq);
    if (row != &between)
        MPI_Barrier(MPI_COMM_WORLD);

    int tag = MSGID_BEGIN_FACT;
    for (int step = 0; step < row->steps; step++) {
        int done = step * row->nb;
        HPL_T_panel *panel = NULL;
        lep_calls.position = step;
        HPL_pdpanel_new(grid, algorithm, row->m - done, row->n + 1 - done, row->nb, &matrix, done, done, tag, &panel);
        lep_panel_is(panel);
        factor(panel);
        for (int chunk = 0; chunk < row->chunks; chunk++)
            update(algorithm, panel, row->nb, random);
        update(algorithm, panel, -1, random);
        HPL_pdpanel_disp(&panel);
        tag = MNxtMgid(tag, MSGID_BEGIN_FACT, MSGID_END_FACT);
    }
    lep_calls.position = row->steps;
    solve(grid, matrix, row);
}

/* Untimed steps until the last rank has got here: what the others still time is to have the same company to its end. */
static void go_on_until_all_end(HPL_T_grid *grid, HPL_T_palg *algorithm, double *memory, lep_random *random) {
    size_t used = lep_calls.used;
    MPI_Request all;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int ended = 0; MPI_Test(&all, &ended, MPI_STATUS_IGNORE), !ended;) {
        run_row(grid, algorithm, &between, memory, random);
        lep_calls.used = used;
    }
}

int main(int argc, char **argv) {
    int ranks;
    lep_mpi_start("probe-hpl-steps", &argc, &argv, &ranks);
    lep_option options[] = {
        {"--design", NULL, true, "table of hpl_step rows"},
        {"--out", NULL, true, "raw file; rank r writes FILE.r<r>"},
        {"--seed", NULL, true, "of the matrices' content"},
        {"--cpus", "0,1", false, "cores of the ranks, those of rank 0 first"},
        {"--threads", "1", false, "cores of a rank, all of which its BLAS is to use"},
        {"--every", "1", false, "rank r writes the calls of row i where i + r is a multiple of this"},
        {"--grid", "column", false, "column (all ranks together) or single (each rank alone, all at once)"},
        {"--nbmin", "2", false, "HPL's NBMIN"},
        {"--ndiv", "2", false, "HPL's NDIV"},
        {"--pfact", "crout", false, "left, crout or right"},
        {"--rfact", "right", false, "left, crout or right"},
        {"--l1", "transposed", false, "transposed or no-transposed: HPL's L1"},
        {"--u", "transposed", false, "transposed or no-transposed: HPL's U"},
        {"--swap", "binary-exchange", false, "binary-exchange, spread-roll or mix"},
        {"--swap-threshold", "64", false, "columns up to which a mix exchanges rows by binary exchange"},
        {"--equil", "1", false, "HPL's equilibration: 0 or 1"},
    };
    size_t count = sizeof options / sizeof options[0];
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    HPL_T_palg algorithm = read_algorithm(options, count);
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    step_row *rows = read_rows(&design);
    int threads = (int)lep_option_integer(options, count, "--threads", 1, CPU_SETSIZE), cpus[CPU_SETSIZE] = {0};
    for (int i = 0; i < ranks * threads; i++) { /* all ranks check the whole list: the error is everybody's */
        int entry = lep_option_cpu(options, count, "--cpus", i);
        if (i / threads == lep_self.rank)
            cpus[i % threads] = entry;
    }
    size_t every = (size_t)lep_option_integer(options, count, "--every", 1, 1000000);
    int cpu = cpus[0];
    if (threads > 1)
        lep_pin_threads(cpus, threads);
    else
        lep_pin(cpu);

    static const char *const forms[] = {"column", "single"};
    bool single = lep_option_choice(options, count, "--grid", forms, 2) == 1;
    HPL_T_grid grid;
    if (HPL_grid_init(single ? MPI_COMM_SELF : MPI_COMM_WORLD, HPL_ROW_MAJOR, single ? 1 : ranks, 1, &grid) != 0)
        lep_fail("HPL refuses a grid of %d x 1", ranks);
    size_t doubles = matrix_doubles(&grid, &between), calls = most_calls(&between);
    for (size_t i = 0; i < design.rows; i++) {
        size_t own = matrix_doubles(&grid, &rows[i]), own_calls = most_calls(&rows[i]);
        doubles = own > doubles ? own : doubles;
        calls = own_calls > calls ? own_calls : calls;
    }
    lep_log_reserve(calls + most_calls(&between) + PIECES);
    double *memory = lep_allocate(doubles * sizeof(double), "the matrix");

    const char *path = lep_mpi_path(lep_option_text(options, count, "--out"));
    FILE *file = lep_output_open(path, lep_mpi_library(), seed, argc, argv);
    lep_output_note(file, "grid", "%dx1", single ? 1 : ranks);
    write_options(file, options, count);
    lep_output_note(file, "warmup_steps", "%d", warm_up.steps);
    lep_output_note(file, "threads", "%d", threads);
    lep_output_columns(file, LEP_KERNEL_COLUMNS);

    lep_random random = lep_random_seeded((uint64_t)seed, (uint64_t)lep_self.rank);
    touch_fresh_memory(&random);
    lep_log_write(file, rows[0].name, "hpl_step", lep_self.rank, cpu, "");
    run_row(&grid, &algorithm, &warm_up, memory, &random);
    lep_calls.used = 0;
    for (size_t i = 0; i < design.rows; i++) {
        random = lep_random_seeded((uint64_t)seed, (uint64_t)i * 4096 + (uint64_t)lep_self.rank + 4096);
        run_row(&grid, &algorithm, &rows[i], memory, &random);
        if (single)
            go_on_until_all_end(&grid, &algorithm, memory, &random);
        if ((i + (size_t)lep_self.rank) % every != 0) {
            lep_calls.used = 0;
            continue;
        }
        lep_log_write(file, rows[i].name, "hpl_step", lep_self.rank, cpu, "");
        lep_output_flush(file, path);
    }
    lep_output_close(file, path);
    HPL_grid_exit(&grid);
    free(rows);
    MPI_Finalize();
    return 0;
}
