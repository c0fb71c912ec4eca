/* HPL with a main of our own, which counts what the solver does: messages by phase and rank, calls of the kernels and
 * their work (m n k, m n or n), and the pivots. Nothing is timed. Built and run by record_hpl_counts.py.
 *
 * The program defines MPI_Send, MPI_Ssend and MPI_Issend itself (MPI's profiling interface); the kernels are wrapped at
 * link time. The pivot exchange and the row swap use the same tag, so that a wrapper of HPL_pdmxswp tells them apart.
 * One JSON line a run goes to standard output. */
#include <hpcc.h>
#include <stdbool.h>
#include <string.h>

enum Phase { PIVOTS, BROADCAST, SWAP, SOLVE, PHASES };
static const char* const phase_names[PHASES] = {"pivots", "broadcast", "swap", "solve"};

#define KERNELS(X)                                                                                                     \
    X(dgemm)                                                                                                           \
    X(dgemm_nn)                                                                                                        \
    X(dtrsm)                                                                                                           \
    X(dtrsm_left)                                                                                                      \
    X(dgemv)                                                                                                           \
    X(dger)                                                                                                            \
    X(dtrsv)                                                                                                           \
    X(dscal)                                                                                                           \
    X(idamax)                                                                                                          \
    X(daxpy)                                                                                                           \
    X(dcopy)                                                                                                           \
    X(dlocswp)                                                                                                         \
    X(dlaswp00N)                                                                                                       \
    X(dlaswp01N)                                                                                                       \
    X(dlaswp01T)                                                                                                       \
    X(dlaswp02N)                                                                                                       \
    X(dlaswp03N)                                                                                                       \
    X(dlaswp03T)                                                                                                       \
    X(dlaswp04N)                                                                                                       \
    X(dlaswp04T)                                                                                                       \
    X(dlaswp05N)                                                                                                       \
    X(dlaswp05T)                                                                                                       \
    X(dlaswp06N)                                                                                                       \
    X(dlaswp06T)                                                                                                       \
    X(dlaswp10N)                                                                                                       \
    X(dlatcpy)                                                                                                         \
    X(dlacpy)
#define AS_ENUM(name) K_##name,
#define AS_STRING(name) #name,
enum Kernel { KERNELS(AS_ENUM) KERNEL_COUNT };
static const char* const kernel_names[KERNEL_COUNT] = {KERNELS(AS_STRING)};

static bool counting = false, inside_pivots = false, inside_pdfact = false;
static long long sent[2 * PHASES];         /* messages and bytes of each phase */
static long long called[2 * KERNEL_COUNT]; /* calls that do something, and their work */
static int* pivots = NULL;                 /* of each column, as global rows */

static void count_message(int count, MPI_Datatype type, int tag) {
    if (!counting)
        return;
    enum Phase phase = SWAP;
    if (inside_pivots)
        phase = PIVOTS;
    else if (MSGID_BEGIN_FACT <= tag && tag <= MSGID_END_FACT)
        phase = BROADCAST;
    else if (MSGID_BEGIN_PTRSV <= tag)
        phase = SOLVE; /* and HPL_broadcast, which only the solve uses here */
    int size = 0;
    PMPI_Type_size(type, &size);
    sent[2 * phase] += 1;
    sent[2 * phase + 1] += (long long)count * size;
}

static void count_kernel(enum Kernel kernel, long long work) {
    if (!counting || work <= 0)
        return;
    called[2 * kernel] += 1;
    called[2 * kernel + 1] += work;
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    count_message(count, type, tag);
    return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Ssend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    count_message(count, type, tag);
    return PMPI_Ssend(data, count, type, to, tag, comm);
}

int MPI_Issend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    count_message(count, type, tag);
    return PMPI_Issend(data, count, type, to, tag, comm, request);
}

/* NOLINTBEGIN(readability-identifier-naming,readability-avoid-const-params-in-decls): the linker's names, HPL's types
 */

/* `work`, `parameters` and `arguments` come in parentheses, since the latter two hold commas. */
#define WRAP(symbol, kernel, work, parameters, arguments)                                                              \
    void __real_##symbol parameters;                                                                                   \
    void __wrap_##symbol parameters;                                                                                   \
    void __wrap_##symbol parameters {                                                                                  \
        count_kernel(kernel, work);                                                                                    \
        __real_##symbol arguments;                                                                                     \
    }
#define OF(m, n) ((m) > 0 && (n) > 0 ? (long long)(m) * (n) : 0)

typedef enum CBLAS_ORDER order;
typedef enum CBLAS_TRANSPOSE transpose;
typedef enum CBLAS_UPLO uplo;
typedef enum CBLAS_DIAG diag;
typedef enum CBLAS_SIDE side;

WRAP(cblas_dgemm, tb == CblasNoTrans ? K_dgemm_nn : K_dgemm, OF(m, n) * k,
     (const order layout, const transpose ta, const transpose tb, const int m, const int n, const int k,
      const double alpha, const double* a, const int lda, const double* b, const int ldb, const double beta, double* c,
      const int ldc),
     (layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))
WRAP(cblas_dtrsm, s == CblasLeft ? K_dtrsm_left : K_dtrsm, OF(m, n) * (s == CblasLeft ? m : n),
     (const order layout, const side s, const uplo u, const transpose t, const diag d, const int m, const int n,
      const double alpha, const double* a, const int lda, double* b, const int ldb),
     (layout, s, u, t, d, m, n, alpha, a, lda, b, ldb))
WRAP(cblas_dgemv, K_dgemv, OF(m, n),
     (const order layout, const transpose t, const int m, const int n, const double alpha, const double* a,
      const int lda, const double* x, const int incx, const double beta, double* y, const int incy),
     (layout, t, m, n, alpha, a, lda, x, incx, beta, y, incy))
WRAP(cblas_dger, K_dger, OF(m, n),
     (const order layout, const int m, const int n, const double alpha, const double* x, const int incx,
      const double* y, const int incy, double* a, const int lda),
     (layout, m, n, alpha, x, incx, y, incy, a, lda))
WRAP(cblas_dtrsv, K_dtrsv, n,
     (const order layout, const uplo u, const transpose t, const diag d, const int n, const double* a, const int lda,
      double* x, const int incx),
     (layout, u, t, d, n, a, lda, x, incx))
WRAP(cblas_dscal, K_dscal, n, (const int n, const double alpha, double* x, const int incx), (n, alpha, x, incx))
WRAP(cblas_daxpy, K_daxpy, n,
     (const int n, const double alpha, const double* x, const int incx, double* y, const int incy),
     (n, alpha, x, incx, y, incy))
/* The copies of whole rows of the pivot search; those within the small work arrays are another matter. */
WRAP(cblas_dcopy, K_dcopy, inside_pdfact && (incx != 1 || incy != 1) ? n : 0,
     (const int n, const double* x, const int incx, double* y, const int incy), (n, x, incx, y, incy))

int __real_cblas_idamax(const int n, const double* x, const int incx);
int __wrap_cblas_idamax(const int n, const double* x, const int incx);
int __wrap_cblas_idamax(const int n, const double* x, const int incx) {
    count_kernel(K_idamax, n);
    return __real_cblas_idamax(n, x, incx);
}

#define PANEL_PARAMETERS (HPL_T_panel * panel, const int ii, const int jj, double* work)
WRAP(HPL_dlocswpN, K_dlocswp, panel->jb, PANEL_PARAMETERS, (panel, ii, jj, work))
WRAP(HPL_dlocswpT, K_dlocswp, panel->jb, PANEL_PARAMETERS, (panel, ii, jj, work))

#define PIVOTED (const int m, const int n, double* a, const int lda, const int* ipiv)
WRAP(HPL_dlaswp00N, K_dlaswp00N, OF(m, n), PIVOTED, (m, n, a, lda, ipiv))
WRAP(HPL_dlaswp10N, K_dlaswp10N, OF(m, n), PIVOTED, (m, n, a, lda, ipiv))
#define TO_U                                                                                                           \
    (const int m, const int n, double* a, const int lda, double* u, const int ldu, const int* from, const int* to)
WRAP(HPL_dlaswp01N, K_dlaswp01N, OF(m, n), TO_U, (m, n, a, lda, u, ldu, from, to))
WRAP(HPL_dlaswp01T, K_dlaswp01T, OF(m, n), TO_U, (m, n, a, lda, u, ldu, from, to))
WRAP(HPL_dlaswp02N, K_dlaswp02N, OF(m, n),
     (const int m, const int n, const double* a, const int lda, double* w0, double* w, const int ldw, const int* from,
      const int* to),
     (m, n, a, lda, w0, w, ldw, from, to))
#define FROM_W (const int m, const int n, double* u, const int ldu, const double* w0, const double* w, const int ldw)
WRAP(HPL_dlaswp03N, K_dlaswp03N, OF(m, n), FROM_W, (m, n, u, ldu, w0, w, ldw))
WRAP(HPL_dlaswp03T, K_dlaswp03T, OF(m, n), FROM_W, (m, n, u, ldu, w0, w, ldw))
#define TO_A_FROM_W                                                                                                    \
    (const int m0, const int m1, const int n, double* u, const int ldu, double* a, const int lda, const double* w0,    \
     const double* w, const int ldw, const int* from, const int* to)
WRAP(HPL_dlaswp04N, K_dlaswp04N, OF(m1, n), TO_A_FROM_W, (m0, m1, n, u, ldu, a, lda, w0, w, ldw, from, to))
WRAP(HPL_dlaswp04T, K_dlaswp04T, OF(m1, n), TO_A_FROM_W, (m0, m1, n, u, ldu, a, lda, w0, w, ldw, from, to))
#define TO_A                                                                                                           \
    (const int m, const int n, double* a, const int lda, const double* u, const int ldu, const int* from, const int* to)
WRAP(HPL_dlaswp05N, K_dlaswp05N, OF(m, n), TO_A, (m, n, a, lda, u, ldu, from, to))
WRAP(HPL_dlaswp05T, K_dlaswp05T, OF(m, n), TO_A, (m, n, a, lda, u, ldu, from, to))
#define WITH_A (const int m, const int n, double* a, const int lda, double* u, const int ldu, const int* from)
WRAP(HPL_dlaswp06N, K_dlaswp06N, OF(m, n), WITH_A, (m, n, a, lda, u, ldu, from))
WRAP(HPL_dlaswp06T, K_dlaswp06T, OF(m, n), WITH_A, (m, n, a, lda, u, ldu, from))
#define COPIED (const int m, const int n, const double* a, const int lda, double* b, const int ldb)
WRAP(HPL_dlatcpy, K_dlatcpy, OF(m, n), COPIED, (m, n, a, lda, b, ldb))
WRAP(HPL_dlacpy, K_dlacpy, OF(m, n), COPIED, (m, n, a, lda, b, ldb))

void __real_HPL_pdmxswp(HPL_T_panel* panel, const int m, const int ii, const int jj, double* work);
void __wrap_HPL_pdmxswp(HPL_T_panel* panel, const int m, const int ii, const int jj, double* work);
void __wrap_HPL_pdmxswp(HPL_T_panel* panel, const int m, const int ii, const int jj, double* work) {
    inside_pivots = true;
    __real_HPL_pdmxswp(panel, m, ii, jj, work);
    inside_pivots = false;
}

void __real_HPL_pdfact(HPL_T_panel* panel);
void __wrap_HPL_pdfact(HPL_T_panel* panel);
void __wrap_HPL_pdfact(HPL_T_panel* panel) {
    inside_pdfact = true;
    __real_HPL_pdfact(panel);
    inside_pdfact = false;
    for (int i = 0; pivots && panel->grid->mycol == panel->pcol && i < panel->jb; i++)
        pivots[panel->ia + i] = (int)panel->DPIV[i];
}

static void print_numbers(const char* name, const long long* pairs, const char* const* names, int count) {
    const char* comma = "";
    printf("\"%s\": {", name);
    for (int i = 0; i < count; i++)
        if (pairs[2 * i] > 0) {
            printf("%s\"%s\": [%lld, %lld]", comma, names[i], pairs[2 * i], pairs[2 * i + 1]);
            comma = ", ";
        }
    printf("}, ");
}

void __real_HPL_pdgesv(HPL_T_grid* grid, HPL_T_palg* algorithm, HPL_T_pmat* matrix);
void __wrap_HPL_pdgesv(HPL_T_grid* grid, HPL_T_palg* algorithm, HPL_T_pmat* matrix);
void __wrap_HPL_pdgesv(HPL_T_grid* grid, HPL_T_palg* algorithm, HPL_T_pmat* matrix) {
    size_t size = (size_t)grid->nprocs, columns = (size_t)matrix->n;
    int* all_pivots = malloc(columns * sizeof *all_pivots);
    long long *ranks = malloc(size * sizeof sent), all_called[2 * KERNEL_COUNT];
    pivots = malloc(columns * sizeof *pivots);
    if (!pivots || !all_pivots || !ranks) {
        MPI_Abort(MPI_COMM_WORLD, 2);
        return;
    }
    for (size_t i = 0; i < columns; i++)
        pivots[i] = -1;
    memset(sent, 0, sizeof sent);
    memset(called, 0, sizeof called);
    counting = true;
    __real_HPL_pdgesv(grid, algorithm, matrix);
    counting = false;
    PMPI_Gather(sent, 2 * PHASES, MPI_LONG_LONG, ranks, 2 * PHASES, MPI_LONG_LONG, 0, grid->all_comm);
    PMPI_Reduce(called, all_called, 2 * KERNEL_COUNT, MPI_LONG_LONG, MPI_SUM, 0, grid->all_comm);
    PMPI_Reduce(pivots, all_pivots, matrix->n, MPI_INT, MPI_MAX, 0, grid->all_comm);
    if (grid->iam == 0) {
        printf("{\"n\": %d, \"nb\": %d, \"p\": %d, \"q\": %d, \"depth\": %d, \"bcast\": %d, \"pfact\": %d, "
               "\"rfact\": %d, \"nbmin\": %d, \"ndiv\": %d, ",
               matrix->n, matrix->nb, grid->nprow, grid->npcol, algorithm->depth, (int)algorithm->btopo - HPL_1RING,
               (int)algorithm->pfact - HPL_LEFT_LOOKING, (int)algorithm->rfact - HPL_LEFT_LOOKING, algorithm->nbmin,
               algorithm->nbdiv);
        long long totals[2 * PHASES];
        for (int i = 0; i < 2 * PHASES; i++) {
            totals[i] = 0;
            for (size_t rank = 0; rank < size; rank++)
                totals[i] += ranks[rank * 2 * PHASES + (size_t)i];
        }
        print_numbers("messages", totals, phase_names, PHASES);
        print_numbers("kernels", all_called, kernel_names, KERNEL_COUNT);
        printf("\"sent\": [");
        for (size_t i = 0; i < size * 2 * PHASES; i++)
            printf("%s%lld", i ? ", " : "", ranks[i]);
        printf("], \"pivots\": [");
        for (size_t i = 0; i < columns; i++)
            printf("%s%d", i ? ", " : "", all_pivots[i]);
        printf("]}\n");
        fflush(stdout);
    }
    free(all_pivots);
    free(ranks);
    free(pivots);
    pivots = NULL;
}

/* NOLINTEND(readability-identifier-naming,readability-avoid-const-params-in-decls) */

int main(int argc, char** argv) {
    HPL_RuntimeData best; /* HPL_main wants to keep the fastest of the runs */
    int failure = 0;
    memset(&best, 0, sizeof best);
    MPI_Init(&argc, &argv);
    HPL_main(argc, argv, &best, &failure);
    MPI_Finalize();
    return failure ? 1 : 0;
}
