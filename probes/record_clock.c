/* One clock for all ranks: how far each rank's clock is behind rank 0's. Ranks of one machine read the same clock, and
 * nothing is done for them; of every other machine the lowest rank exchanges messages with rank 0, and takes the
 * exchange with the shortest round trip, whose middle is when rank 0 looked at its clock, to within half of it. */
#include "record_clock.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "clock_exchange.h"
#include "record_inside.h"

enum { EXCHANGES = 200 };

/* The same number on ranks that share a clock: of the running kernel, not of the host's name, which containers change.
 */
static uint64_t machine(int rank) {
    char text[64] = "";
    if (lep_clock_shift_ns || getenv("LEPAUTE_RECORD_TEST_SHIFT_NS"))
        return (uint64_t)rank; /* a test has made them differ */
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!file || !fgets(text, sizeof text, file)) {
        int length = 0;
        char name[MPI_MAX_PROCESSOR_NAME] = "";
        PMPI_Get_processor_name(name, &length);
        snprintf(text, sizeof text, "%.60s", name);
    }
    if (file)
        fclose(file);
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
    return hash;
}

static int64_t read_clock(const lep_clock *clock) {
    (void)clock;
    return lep_clock_ns();
}

static lep_record_clock ask(MPI_Comm comm, const lep_clock *clock) {
    static lep_clock_exchange exchanges[EXCHANGES];
    static double scratch[EXCHANGES];
    lep_clock_ask(comm, 0, clock, exchanges, EXCHANGES);
    lep_clock_offset offset = lep_offset_by_shortest(exchanges, EXCHANGES, scratch, 1);
    return (lep_record_clock){offset.x_ns, (int64_t)offset.offset_ns, (int64_t)(2 * offset.bound_ns)};
}

lep_record_clock lep_clock_compare(void) {
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const lep_clock clock = {.read_ns = read_clock, .name = "recorder", .resolution_ns = 1};
    lep_record_clock found = {.at_ns = lep_clock_ns()};
    uint64_t own = machine(rank), range[2] = {own, ~own}, most[2];
    PMPI_Allreduce(range, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (most[0] == ~most[1]) /* One machine. Making communicators moves what the program allocates later: large blocks
                              * that it frees were given back to the system, and faulted in again and again. */
        return found;
    MPI_Comm comm;
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    uint64_t *machines = malloc((size_t)ranks * sizeof *machines);
    if (!machines) {
        PMPI_Abort(MPI_COMM_WORLD, 2);
        return found;
    }
    PMPI_Allgather(&own, 1, MPI_UINT64_T, machines, 1, MPI_UINT64_T, comm);
    int leader = rank;
    for (int other = 0; other < ranks; other++) {
        int first = 0;
        while (machines[first] != machines[other])
            first++;
        if (other == rank)
            leader = first;
        if (first == 0 || first != other)
            continue; /* rank 0's machine, or one that has had its turn */
        if (rank == 0)
            lep_clock_answer(comm, other, &clock, NULL);
        else if (rank == other)
            found = ask(comm, &clock);
    }
    /* Every rank gets its leader's. */
    MPI_Comm mine;
    PMPI_Comm_split(comm, leader, rank, &mine);
    PMPI_Bcast(&found, (int)sizeof found, MPI_BYTE, 0, mine);
    PMPI_Comm_free(&mine);
    PMPI_Barrier(comm);
    PMPI_Comm_free(&comm);
    free(machines);
    return found;
}
