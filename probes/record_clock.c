/* One clock for all ranks: how far each rank's clock is behind rank 0's. Ranks of one machine read the same clock, and
 * nothing is done for them; of every other machine the lowest rank exchanges messages with rank 0, and takes the
 * exchange with the shortest round trip, whose middle is when rank 0 looked at its clock, to within half of it. */
#include "record_clock.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "record_inside.h"

enum { EXCHANGES = 200, TAG = 7 };

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

static void answer(MPI_Comm comm, int partner) {
    for (int i = 0; i < EXCHANGES; i++) {
        int64_t now_ns = 0;
        PMPI_Recv(&now_ns, 1, MPI_INT64_T, partner, TAG, comm, MPI_STATUS_IGNORE);
        now_ns = lep_clock_ns();
        PMPI_Send(&now_ns, 1, MPI_INT64_T, partner, TAG, comm);
    }
}

static lep_record_clock ask(MPI_Comm comm) {
    lep_record_clock best = {.round_trip_ns = INT64_MAX};
    for (int i = 0; i < EXCHANGES; i++) {
        int64_t theirs_ns = 0, before_ns = lep_clock_ns();
        PMPI_Send(&theirs_ns, 1, MPI_INT64_T, 0, TAG, comm);
        PMPI_Recv(&theirs_ns, 1, MPI_INT64_T, 0, TAG, comm, MPI_STATUS_IGNORE);
        int64_t after_ns = lep_clock_ns(), middle_ns = before_ns + (after_ns - before_ns) / 2;
        if (after_ns - before_ns < best.round_trip_ns)
            best = (lep_record_clock){middle_ns, theirs_ns - middle_ns, after_ns - before_ns};
    }
    return best;
}

lep_record_clock lep_clock_compare(void) {
    int rank, ranks;
    MPI_Comm comm;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    lep_record_clock found = {.at_ns = lep_clock_ns()};
    uint64_t own = machine(rank), *machines = malloc((size_t)ranks * sizeof *machines);
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
            answer(comm, other);
        else if (rank == other)
            found = ask(comm);
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
