/* MPI, through its profiling interface: every call of the program writes a row. */
#include <mpi.h>
#include <string.h>

#include "record_clock.h"
#include "record_inside.h"
#include "record_world.h"

int64_t lep_messages; /* calls other than probes: read by the same thread's hooks, so that no lock is needed */

typedef struct {
    int peer; /* in MPI_COMM_WORLD */
    int64_t tag, size_bytes;
} message;

static const message NONE = {-1, -1, 0};

static void write_call(int *code, const char *name, int64_t start_ns, int64_t end_ns, message what) {
    lep_write_message(lep_code(code, LEP_RECORD_MPI, name), start_ns, end_ns, what.peer, (int)what.tag,
                      what.size_bytes);
}

/* The body of a wrapper: `call` is the real call, `what` the message of its row, evaluated after the call, and `after`
 * more to do then. What `what` and `after` hold stands outside the two stamps. */
#define RECORDED(name, call, what, after)                                                                              \
    {                                                                                                                  \
        static int code;                                                                                               \
        if (!lep_call_begin())                                                                                         \
            return P##call;                                                                                            \
        int64_t start_ns = lep_clock_ns();                                                                             \
        int result = P##call;                                                                                          \
        int64_t end_ns = lep_clock_ns();                                                                               \
        write_call(&code, name, start_ns, end_ns, what);                                                               \
        lep_messages++;                                                                                                \
        after;                                                                                                         \
        lep_call_end();                                                                                                \
        return result;                                                                                                 \
    }

static int64_t bytes_of(int64_t count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size == MPI_UNDEFINED)
        return 0;
    return count * (int64_t)size;
}

static message sent(int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    return (message){lep_world_rank(comm, peer), tag, bytes_of(count, type)};
}

/* What a receive brought, which may be less than there was room for. */
static message received(const MPI_Status *status, MPI_Comm comm) {
    MPI_Count bytes = 0;
    if (PMPI_Get_elements_x(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED)
        bytes = 0;
    if (status->MPI_SOURCE < 0)
        return NONE;
    return (message){lep_world_rank(comm, status->MPI_SOURCE), status->MPI_TAG, bytes};
}

static int64_t any_tag(int tag) {
    return tag == MPI_ANY_TAG ? -1 : tag;
}

/* ---- beginning and end ---------------------------------------------------------------------------------------- */

static void begin(void) {
    int rank, ranks, length = 0;
    static char library[MPI_MAX_LIBRARY_VERSION_STRING];
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
    file->start_ns = lep_clock_ns();
}

LEP_EXPORT int MPI_Init(int *argc, char ***argv) {
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        begin();
    return result;
}

LEP_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        begin();
    return result;
}

LEP_EXPORT int MPI_Finalize(void) {
    lep_recording = lep_recording && lep_record_file();
    bool recorded = lep_recording;
    lep_inside_call = true;
    lep_record_clock clock = lep_clock_compare();
    if (lep_record_file())
        lep_record_file()->clocks[1] = clock;
    if (recorded)
        lep_record_close();
    return PMPI_Finalize();
}

/* The standard's own switch for profilers: 0 off, anything else on. */
LEP_EXPORT int MPI_Pcontrol(const int level, ...) {
    lep_record_header *file = lep_record_file();
    lep_recording = file && !file->finished && level != 0;
    return MPI_SUCCESS;
}

/* ---- sends ---------------------------------------------------------------------------------------------------- */

#define SEND(form)                                                                                                     \
    LEP_EXPORT int MPI_##form(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)        \
        RECORDED("MPI_" #form, MPI_##form(buffer, count, type, to, tag, comm), sent(count, type, to, tag, comm), )
SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)

static void keep(MPI_Request request, message what, bool receive, MPI_Comm comm) {
    lep_request_keep(request, &(lep_request){what.peer, receive, what.tag, what.size_bytes, comm});
}

#define ISEND(form)                                                                                                    \
    LEP_EXPORT int MPI_##form(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,        \
                              MPI_Request *request)                                                                    \
        RECORDED("MPI_" #form, MPI_##form(buffer, count, type, to, tag, comm, request),                                \
                 sent(count, type, to, tag, comm), keep(*request, sent(count, type, to, tag, comm), false, comm))
ISEND(Isend)
ISEND(Issend)
ISEND(Ibsend)
ISEND(Irsend)

/* ---- receives ------------------------------------------------------------------------------------------------- */

LEP_EXPORT int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Recv", MPI_Recv(buffer, count, type, from, tag, comm, status), received(status, comm), )
}

/* The size is the room until the message is there. */
static message expected(int count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
    return (message){lep_world_rank(comm, from), any_tag(tag), bytes_of(count, type)};
}

LEP_EXPORT int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                         MPI_Request *request)
    RECORDED("MPI_Irecv", MPI_Irecv(buffer, count, type, from, tag, comm, request),
             expected(count, type, from, tag, comm), keep(*request, expected(count, type, from, tag, comm), true, comm))

    /* Two rows: what was sent, and at the end of the call, without a duration, what came. */
    static int64_t write_arrival(int64_t at_ns, message what) {
    static int code;
    write_call(&code, "MPI_Sendrecv_arrival", at_ns, at_ns, what);
    return at_ns;
}

LEP_EXPORT int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                            int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                            MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Sendrecv",
             MPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status),
             sent(out_count, out_type, to, out_tag, comm), write_arrival(end_ns, received(status, comm)))
}

/* ---- completion ----------------------------------------------------------------------------------------------- */

static message of_request(const lep_request *request) {
    return (message){request->peer, request->tag, request->size_bytes};
}

/* Of a request that is over: a receive now knows its sender and its size. */
static message finished(MPI_Request request, const MPI_Status *status) {
    lep_request kept = lep_request_take(request);
    if (kept.receive && status && status->MPI_SOURCE >= 0)
        return received(status, kept.comm);
    return of_request(&kept);
}

LEP_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before = *request;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Wait", MPI_Wait(request, status), finished(before, status), )
}

enum { MANY = 256 }; /* requests whose handles are kept on the stack; of more only the number is known */

/* Bytes of all of them; the peer where they are one. */
static message finished_all(int count, const MPI_Request *before, const MPI_Status *statuses) {
    message sum = NONE;
    for (int i = 0; i < count && i < MANY; i++) {
        message one = finished(before[i], statuses ? &statuses[i] : NULL);
        if (count == 1)
            return one;
        sum.size_bytes += one.size_bytes;
    }
    return sum;
}

static void copy_handles(MPI_Request *copy, const MPI_Request *requests, int count) {
    for (int i = 0; i < count && i < MANY; i++)
        copy[i] = requests[i];
}

LEP_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    RECORDED("MPI_Waitall", MPI_Waitall(count, requests, statuses),
             finished_all(count, before, statuses == MPI_STATUSES_IGNORE ? NULL : statuses), )
}

LEP_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Waitany", MPI_Waitany(count, requests, index, status),
             *index >= 0 && *index < MANY ? finished(before[*index], status) : NONE, )
}

static message finished_some(int done, const int *indices, const MPI_Request *before) {
    message sum = NONE;
    for (int i = 0; i < done; i++)
        if (indices[i] >= 0 && indices[i] < MANY)
            sum.size_bytes += finished(before[indices[i]], NULL).size_bytes;
    return sum;
}

LEP_EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    RECORDED("MPI_Waitsome", MPI_Waitsome(count, requests, done, indices, statuses),
             finished_some(*done, indices, before), )
}

/* ---- probes ---------------------------------------------------------------------------------------------------- */

/* A probe is no message: those who count them between two moments want to know whether something happened. `found`
 * tells whether it found something; a look that did not is written in another way. */
#define PROBED(name, call, found, what, look)                                                                          \
    {                                                                                                                  \
        static int code;                                                                                               \
        if (!lep_call_begin())                                                                                         \
            return P##call;                                                                                            \
        int64_t start_ns = lep_clock_ns();                                                                             \
        int result = P##call;                                                                                          \
        int64_t end_ns = lep_clock_ns();                                                                               \
        if (found)                                                                                                     \
            write_call(&code, name, start_ns, end_ns, what);                                                           \
        else                                                                                                           \
            write_look(&code, name, start_ns, end_ns, look);                                                           \
        lep_call_end();                                                                                                \
        return result;                                                                                                 \
    }

static void write_look(int *code, const char *name, int64_t start_ns, int64_t end_ns, message what) {
    lep_write_look(lep_code(code, LEP_RECORD_MPI, name), start_ns, end_ns, what.peer, (int)what.tag);
}

LEP_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before = *request;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Test", MPI_Test(request, flag, status), *flag, finished(before, status), NONE)
}

LEP_EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    PROBED("MPI_Testall", MPI_Testall(count, requests, flag, statuses), *flag,
           finished_all(count, before, statuses == MPI_STATUSES_IGNORE ? NULL : statuses), NONE)
}

LEP_EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Testany", MPI_Testany(count, requests, index, flag, status), *flag,
           *index >= 0 && *index < MANY ? finished(before[*index], status) : NONE, NONE)
}

LEP_EXPORT int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Iprobe", MPI_Iprobe(from, tag, comm, flag, status), *flag, received(status, comm),
           ((message){lep_world_rank(comm, from), any_tag(tag), 0}))
}

LEP_EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Probe", MPI_Probe(from, tag, comm, status), true, received(status, comm), NONE)
}

/* ---- collective operations: the bytes that this rank gives, or gets from the root -------------------------------- */

static message collective(int root, MPI_Comm comm, int64_t bytes) {
    return (message){lep_world_rank(comm, root), -1, bytes};
}

static int members(MPI_Comm comm) {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

static int64_t sum_of(const int *counts, MPI_Comm comm) {
    int64_t sum = 0;
    for (int i = members(comm) - 1; counts && i >= 0; i--)
        sum += counts[i];
    return sum;
}

/* With MPI_IN_PLACE the arguments of that side mean nothing. */
static int64_t given(const void *buffer, int64_t items, MPI_Datatype type, int64_t instead, MPI_Datatype instead_type) {
    return buffer == MPI_IN_PLACE ? bytes_of(instead, instead_type) : bytes_of(items, type);
}

enum { NO_ROOT = -1 };

LEP_EXPORT int MPI_Barrier(MPI_Comm comm) RECORDED("MPI_Barrier", MPI_Barrier(comm), NONE, )

    LEP_EXPORT int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
        RECORDED("MPI_Bcast", MPI_Bcast(buffer, count, type, root, comm),
                 collective(root, comm, bytes_of(count, type)), )

            LEP_EXPORT
    int MPI_Reduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
        RECORDED("MPI_Reduce", MPI_Reduce(out, in, count, type, op, root, comm),
                 collective(root, comm, bytes_of(count, type)), )

#define REDUCTION(form)                                                                                                \
    LEP_EXPORT int MPI_##form(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)       \
        RECORDED("MPI_" #form, MPI_##form(out, in, count, type, op, comm),                                             \
                 collective(NO_ROOT, comm, bytes_of(count, type)), )
            REDUCTION(Allreduce) REDUCTION(Scan) REDUCTION(Exscan) REDUCTION(Reduce_scatter_block)

                LEP_EXPORT
    int MPI_Reduce_scatter(const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm)
        RECORDED("MPI_Reduce_scatter", MPI_Reduce_scatter(out, in, counts, type, op, comm),
                 collective(NO_ROOT, comm, bytes_of(sum_of(counts, comm), type)), )

            LEP_EXPORT int MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                                         MPI_Datatype in_type, MPI_Comm comm)
                RECORDED("MPI_Allgather", MPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm),
                         collective(NO_ROOT, comm, given(out, out_count, out_type, in_count, in_type)), )

                    LEP_EXPORT
    int MPI_Allgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                       const int at[], MPI_Datatype in_type, MPI_Comm comm)
        RECORDED("MPI_Allgatherv", MPI_Allgatherv(out, out_count, out_type, in, in_counts, at, in_type, comm),
                 collective(NO_ROOT, comm, given(out, out_count, out_type, 0, in_type)), )

            LEP_EXPORT int MPI_Gather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                                      MPI_Datatype in_type, int root, MPI_Comm comm)
                RECORDED("MPI_Gather", MPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm),
                         collective(root, comm, given(out, out_count, out_type, in_count, in_type)), )

                    LEP_EXPORT
    int MPI_Gatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                    const int at[], MPI_Datatype in_type, int root, MPI_Comm comm)
        RECORDED("MPI_Gatherv", MPI_Gatherv(out, out_count, out_type, in, in_counts, at, in_type, root, comm),
                 collective(root, comm, given(out, out_count, out_type, 0, in_type)), )

            LEP_EXPORT int MPI_Scatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                                       MPI_Datatype in_type, int root, MPI_Comm comm)
                RECORDED("MPI_Scatter", MPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm),
                         collective(root, comm, given(in, in_count, in_type, out_count, out_type)), )

                    LEP_EXPORT
    int MPI_Scatterv(const void *out, const int out_counts[], const int at[], MPI_Datatype out_type, void *in,
                     int in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
        RECORDED("MPI_Scatterv", MPI_Scatterv(out, out_counts, at, out_type, in, in_count, in_type, root, comm),
                 collective(root, comm, given(in, in_count, in_type, 0, out_type)), )

            LEP_EXPORT
    int MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                     MPI_Datatype in_type, MPI_Comm comm)
        RECORDED("MPI_Alltoall", MPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm),
                 collective(NO_ROOT, comm, members(comm) * given(out, out_count, out_type, in_count, in_type)), )

            LEP_EXPORT
    int MPI_Alltoallv(const void *out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void *in,
                      const int in_counts[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm)
        RECORDED("MPI_Alltoallv", MPI_Alltoallv(out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm),
                 collective(NO_ROOT, comm,
                            out == MPI_IN_PLACE ? bytes_of(sum_of(in_counts, comm), in_type)
                                                : bytes_of(sum_of(out_counts, comm), out_type)), )

    /* ---- communicators: collective too, and their handles must not be taken for older ones
       ---------------------------- */

    LEP_EXPORT int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *made)
        RECORDED("MPI_Comm_split", MPI_Comm_split(comm, colour, key, made), NONE, )

            LEP_EXPORT int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
                RECORDED("MPI_Comm_dup", MPI_Comm_dup(comm, made), NONE, )

                    LEP_EXPORT int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
                        RECORDED("MPI_Comm_create", MPI_Comm_create(comm, group, made), NONE, )

    /* Forgotten before the call: after it, another thread may be given the same handle. */
    LEP_EXPORT int MPI_Comm_free(MPI_Comm *comm) {
    lep_world_forget(*comm);
    RECORDED("MPI_Comm_free", MPI_Comm_free(comm), NONE, )
}

LEP_EXPORT int MPI_Comm_disconnect(MPI_Comm *comm) {
    lep_world_forget(*comm);
    RECORDED("MPI_Comm_disconnect", MPI_Comm_disconnect(comm), NONE, )
}
