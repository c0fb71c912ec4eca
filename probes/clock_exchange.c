/* Calls MPI by its profiling names: the recorder, which has the others, is one of those who ask. */
#include "clock_exchange.h"

enum { TAG_ASK = 7, TAG_ANSWER };

void lep_clock_ask_once(MPI_Comm comm, int partner, const lep_clock *clock, lep_clock_exchange *result, bool more) {
    int64_t word = more;
    result->before_ns = lep_clock_read_ns(clock);
    PMPI_Send(&word, 1, MPI_INT64_T, partner, TAG_ASK, comm);
    PMPI_Recv(&word, 1, MPI_INT64_T, partner, TAG_ANSWER, comm, MPI_STATUS_IGNORE);
    if (clock->after_receive)
        clock->after_receive(clock, true);
    result->after_ns = lep_clock_read_ns(clock);
    result->remote_ns = word;
}

void lep_clock_ask(MPI_Comm comm, int partner, const lep_clock *clock, lep_clock_exchange *exchanges, int count) {
    for (int i = 0; i < count; i++)
        lep_clock_ask_once(comm, partner, clock, &exchanges[i], i + 1 < count);
}

void lep_clock_answer(MPI_Comm comm, int partner, const lep_clock *clock, const lep_clock_model *model) {
    int64_t more = 1;
    while (more) {
        PMPI_Recv(&more, 1, MPI_INT64_T, partner, TAG_ASK, comm, MPI_STATUS_IGNORE);
        if (clock->after_receive)
            clock->after_receive(clock, false);
        int64_t now_ns = lep_clock_read_ns(clock);
        if (model)
            now_ns = lep_clock_at(model, now_ns);
        PMPI_Send(&now_ns, 1, MPI_INT64_T, partner, TAG_ANSWER, comm);
    }
}
