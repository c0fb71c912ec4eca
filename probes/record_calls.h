/* How a wrapper of an MPI routine is written. */
#ifndef LEPAUTE_RECORD_CALLS_H
#define LEPAUTE_RECORD_CALLS_H

#include <mpi.h>

#ifdef LEP_RECORD_SMPI
#include "record_smpi.h"
#endif
#include "record_inside.h"
#include "record_world.h"

extern int64_t lep_messages; /* calls of this process but its probes, for the hooks of the same thread: no lock */

typedef struct {
    int peer; /* in MPI_COMM_WORLD */
    int64_t tag, size_bytes;
    uint16_t comm; /* as in lep_record_row */
} message;

static const message NONE __attribute__((unused)) = {-1, -1, 0, 0};

static inline void write_call(int *code, const char *name, int64_t start_ns, int64_t end_ns, message what) {
    if (lep_recording)
        lep_write_message(lep_code(code, LEP_RECORD_MPI, name), start_ns, end_ns, what.peer, (int)what.tag,
                          what.size_bytes, what.comm);
}

#ifdef LEP_RECORD_SMPI
#define REAL(call) lep_next_##call
#else
#define REAL(call) P##call
#endif

/* The body of a wrapper: `call` is the real call, and `written` what writes its rows, from code, start_ns and end_ns,
 * and does what else is to be done then, outside the two stamps. */
#define STAMPED(call, written)                                                                                         \
    {                                                                                                                  \
        static int code;                                                                                               \
        if (!lep_call_begin())                                                                                         \
            return REAL(call);                                                                                         \
        int64_t start_ns = lep_starts();                                                                               \
        int result = REAL(call);                                                                                       \
        int64_t end_ns = lep_ended();                                                                                  \
        written;                                                                                                       \
        lep_call_end();                                                                                                \
        return result;                                                                                                 \
    }
/* With one row: `what` is the message of it. */
#define RECORDED(name, call, what, after)                                                                              \
    STAMPED(call, write_call(&code, name, start_ns, end_ns, what); lep_messages++; after)

/* A look for something: `found` tells whether it was there, and `vain` writes a look in vain, in another way. It is no
 * message: those who count messages between two moments want to know whether something happened. */
#define PROBED(name, call, found, what, vain)                                                                          \
    STAMPED(                                                                                                           \
        call, if (found) write_call(&code, name, start_ns, end_ns, what); else if (lep_recording) {                    \
            lep_code(&code, LEP_RECORD_MPI, name);                                                                     \
            vain;                                                                                                      \
        })

/* For a message, and of a request: what stands as `vain` above. */
#define LOOKED(from, tag, comm)                                                                                        \
    lep_write_look(code, start_ns, end_ns, lep_world_rank(comm, from), any_tag(tag), comm_bits(comm))
#define TESTED lep_write_test(code, start_ns, end_ns)

static inline int64_t bytes_of(int64_t count, MPI_Datatype type) {
#ifdef LEP_RECORD_SMPI
    int size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size == MPI_UNDEFINED)
        return 0;
#else
    MPI_Count size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size == MPI_UNDEFINED)
        return 0;
#endif
    return count * (int64_t)size;
}

/* What a receive brought, which may be less than there was room for. */
static inline int64_t bytes_received(const MPI_Status *status) {
#ifdef LEP_RECORD_SMPI
    int bytes = 0; /* SMPI 3.32 has no other */
    if (PMPI_Get_count(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED)
        bytes = 0;
#else
    MPI_Count bytes = 0;
    if (PMPI_Get_elements_x(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED)
        bytes = 0;
#endif
    return bytes;
}

#endif
