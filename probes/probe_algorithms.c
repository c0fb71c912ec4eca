/* probe-algorithms: calls each row of a design once, so that the dynamic linker's log tells what the library runs.
 *
 * With LD_DEBUG=bindings and LD_BIND_NOT=1 (ld.so(8)) the linker writes down every call from one shared object to an
 * exported function. A call of a64l comes before that of each row, one of l64a after it: what stands between the
 * two of the k-th pair are the functions of row k, among them, where a library exports them, those of its algorithms.
 * No times are taken. The program has to be linked with -z lazy.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "collective_operations.h"
#include "probe_common.h"
#include "probe_mpi.h"

enum { MOST_BYTES = 1 << 26 };

static LEP_FIND_NAMED(lep_collective_operation, operation_named, lep_collective_operations,
                      lep_collective_operation_count)

    int main(int argc, char **argv) {
    int ranks;
    lep_mpi_start("probe-algorithms", &argc, &argv, &ranks);
    lep_option options[] = {
        {"--design", NULL, true, "table of operations and sizes"},
        {"--datatype", "MPI_DOUBLE", false, "of reductions"},
        {"--op", "MPI_SUM", false, "of reductions"},
        {"--root", "0", false, "of operations that have one"},
    };
    const size_t count = sizeof options / sizeof *options;
    lep_options_read(options, count, argc, argv);
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    size_t operations = lep_design_column(&design, "operation"), sizes = lep_design_column(&design, "size_bytes");
    int most_bytes = 1;
    for (size_t row = 0; row < design.rows; row++) {
        int bytes = (int)lep_design_integer(&design, row, sizes, 0, MOST_BYTES);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    lep_collective with = {.comm = MPI_COMM_WORLD, .rank = lep_self.rank, .ranks = ranks};
    with.root = (int)lep_option_integer(options, count, "--root", 0, ranks - 1);
    with.reduction =
        lep_reduction_named(lep_option_text(options, count, "--datatype"), lep_option_text(options, count, "--op"));
    lep_collective_open(&with, most_bytes);
    for (size_t row = 0; row < design.rows; row++) {
        const char *name = lep_design_text(&design, row, operations);
        const lep_collective_operation *operation = operation_named(name);
        if (!operation)
            lep_design_fail(&design, row, "operation is %s; it is no collective operation", name);
        lep_collective_size(&with, operation, (int)lep_design_integer(&design, row, sizes, 0, MOST_BYTES));
        lep_collective_fill(&with, operation, false);
        volatile long mark = a64l("a"); /* of which a compiler knows that it does nothing else */
        (void)mark;
        operation->call(&with);
        l64a(1);
    }
    MPI_Finalize();
    return 0;
}
