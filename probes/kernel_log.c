#include "kernel_log.h"

#include <stdlib.h>

#define LEP_KERNEL_NAME(name) #name,
const char *const lep_kernel_names[LEP_KERNEL_COUNT] = {LEP_KERNELS(LEP_KERNEL_NAME)};

lep_log lep_calls;

void lep_log_reserve(size_t room) {
    if (room <= lep_calls.room)
        return;
    free(lep_calls.calls);
    lep_calls = (lep_log){.calls = lep_allocate(room * sizeof(lep_call), "the log of calls"), .room = room};
}

void lep_log_write(FILE *file, const char *design_row, const char *kind, int rank, int cpu, const char *more) {
    if (lep_calls.lost)
        lep_fail_alone("design row %s made %zu calls more than the log holds; report this as a bug", design_row,
                       lep_calls.lost);
    for (size_t i = 0; i < lep_calls.used; i++) {
        const lep_call *call = &lep_calls.calls[i];
        fprintf(file, "%s,%s,%d,%s,%d,%d,%d,%.9f,%.9f,%d,%d%s\n", design_row, kind, call->position,
                lep_kernel_names[call->kernel], call->m, call->n, call->k, 1e-9 * (double)call->start_ns,
                1e-9 * (double)(call->end_ns - call->start_ns), rank, cpu, more);
    }
    lep_calls.used = 0;
}
