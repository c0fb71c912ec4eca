/* From MPI_Init to MPI_Finalize, and what turns recording off and on in between. */
#include <mpi.h>
#include <string.h>

#include "record_calls.h"
#include "record_clock.h"
#include "record_requests.h"

int64_t lep_messages;

/* What a test of the request takes besides, by rows that are thrown away; of several batches the median. */
static uint32_t cost_ps(MPI_Request request) {
    enum { ROWS = 256, BATCHES = 9 };
    int64_t costs_ns[BATCHES], before_ns = 0;
    for (int batch = 0; batch < BATCHES; batch++) {
        int over;
        int64_t start_ns = lep_clock_ns();
        for (int i = 0; i < ROWS; i++)
            MPI_Test(&request, &over, MPI_STATUS_IGNORE);
        int64_t took_ns = lep_clock_ns() - start_ns, calls_ns = lep_record_took_ns();
        costs_ns[batch] = took_ns - (calls_ns - before_ns);
        before_ns = calls_ns;
        for (int i = batch; i > 0 && costs_ns[i - 1] > costs_ns[i]; i--) {
            int64_t larger_ns = costs_ns[i - 1];
            costs_ns[i - 1] = costs_ns[i];
            costs_ns[i] = larger_ns;
        }
    }
    lep_record_rewind();
    lep_last_look = NULL;
    lep_messages = 0;
    int64_t median_ns = costs_ns[BATCHES / 2];
    return median_ns > 0 ? (uint32_t)(median_ns * 1000 / ROWS) : 0;
}

static void measure_costs(uint32_t costs_ps[2]) {
    char nothing;
    MPI_Request never;
    costs_ps[0] = cost_ps(MPI_REQUEST_NULL);
    PMPI_Irecv(&nothing, 0, MPI_BYTE, 0, 32767, MPI_COMM_SELF, &never);
    costs_ps[1] = cost_ps(never);
    PMPI_Cancel(&never);
    PMPI_Wait(&never, MPI_STATUS_IGNORE);
    PMPI_Barrier(MPI_COMM_WORLD);
}

static void begin(void) {
    static bool begun; /* some libraries' Fortran calls end in the C routine of the program, which is ours */
    int rank, ranks, length = 0;
    static char library[MPI_MAX_LIBRARY_VERSION_STRING];
    if (begun)
        return;
    begun = true;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    lep_record_open(rank, ranks, library);
    lep_record_header *file = lep_record_file();
    lep_record_clock clock = lep_clock_compare(); /* by all ranks, also by one whose file could not be opened */
    if (!file)
        return;
    file->clocks[0] = file->clocks[1] = clock;
    measure_costs(file->cost_ps);
    lep_core_begin(file);
}

static void end(void) {
    static bool ended;
    if (ended)
        return;
    ended = true;
    int64_t end_ns = lep_starts();
    lep_inside_call = true;
    lep_record_clock clock = lep_clock_compare();
    if (lep_record_file()) {
        lep_record_file()->clocks[1] = clock;
        lep_record_file()->end_ns = end_ns;
    }
    lep_record_close(LEP_FINALIZED);
}

LEP_EXPORT int MPI_Abort(MPI_Comm comm, int code) {
    if (lep_open) {
        lep_record_file()->end_ns = lep_starts();
        lep_record_file()->abort_code = code;
    }
    lep_record_close(LEP_ABORTED);
    return PMPI_Abort(comm, code);
}

LEP_EXPORT int MPI_Init(int *argc, char ***argv) {
    lep_core_before();
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        begin();
    return result;
}

LEP_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    lep_core_before();
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        begin();
    return result;
}

LEP_EXPORT int MPI_Finalize(void) {
    end();
    return PMPI_Finalize();
}

/* NOLINTBEGIN(readability-identifier-naming): what compilers make of the names */

static void begin_fortran(void) {
    int initialized = 0;
    bool passed_by = !lep_record_file();
    PMPI_Initialized(&initialized);
    if (!initialized)
        return;
    begin();
    if (!passed_by || !lep_record_file())
        return;
    lep_record_file()->fortran = 1;
    lep_ends_pass_by = true;
}

#define FORTRAN(symbol, before, after, declared, ...)                                                                  \
    LEP_EXPORT void symbol declared;                                                                                   \
    void symbol declared {                                                                                             \
        before;                                                                                                        \
        ((__typeof__(&(symbol)))lep_next_symbol(#symbol))(__VA_ARGS__);                                                \
        after;                                                                                                         \
    }
#define OF_THREADS (const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
FORTRAN(mpi_init_, lep_core_before(), begin_fortran(), (MPI_Fint * error), error)
FORTRAN(mpi_init_f08_, lep_core_before(), begin_fortran(), (MPI_Fint * error), error)
FORTRAN(mpi_init_thread_, lep_core_before(), begin_fortran(), OF_THREADS, required, provided, error)
FORTRAN(mpi_init_thread_f08_, lep_core_before(), begin_fortran(), OF_THREADS, required, provided, error)
FORTRAN(mpi_finalize_, end(), (void)0, (MPI_Fint * error), error)
FORTRAN(mpi_finalize_f08_, end(), (void)0, (MPI_Fint * error), error)

#define FORTRAN_PCONTROL(symbol)                                                                                       \
    LEP_EXPORT void symbol(const MPI_Fint *level);                                                                     \
    void symbol(const MPI_Fint *level) {                                                                               \
        MPI_Pcontrol(*level, NULL);                                                                                    \
    }
FORTRAN_PCONTROL(mpi_pcontrol_)
FORTRAN_PCONTROL(mpi_pcontrol_f08_)

/* NOLINTEND(readability-identifier-naming) */
