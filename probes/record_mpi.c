/* MPI, through its profiling interface: every call of the program writes a row. Here are messages between two ranks,
 * and the beginning and the end. */
#include <mpi.h>
#include <string.h>

#include "record_calls.h"
#ifndef LEP_RECORD_SMPI
#include "record_clock.h"
#endif

int64_t lep_messages;

/* Nothing goes to MPI_PROC_NULL, nor comes from there. */
static message sent(int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    return (message){lep_world_rank(comm, peer), tag, peer == MPI_PROC_NULL ? 0 : bytes_of(count, type)};
}

/* What a receive brought, which may be less than there was room for. */
static message received(const MPI_Status *status, MPI_Comm comm) {
#ifdef LEP_RECORD_SMPI
    int bytes = 0; /* SMPI 3.32 has no other */
    if (PMPI_Get_count(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED)
        bytes = 0;
#else
    MPI_Count bytes = 0;
    if (PMPI_Get_elements_x(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED)
        bytes = 0;
#endif
    if (status->MPI_SOURCE < 0)
        return (message){lep_world_rank(comm, status->MPI_SOURCE), -1, 0};
    return (message){lep_world_rank(comm, status->MPI_SOURCE), status->MPI_TAG, bytes};
}

static int64_t any_tag(int tag) {
    return tag == MPI_ANY_TAG ? -1 : tag;
}

/* ---- beginning and end ---------------------------------------------------------------------------------------- */

#ifndef LEP_RECORD_SMPI

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
    int64_t end_ns = lep_clock_ns();
    lep_record_clock clock = lep_clock_compare();
    if (lep_record_file()) {
        lep_record_file()->clocks[1] = clock;
        lep_record_file()->end_ns = end_ns;
    }
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

#endif

/* ---- sends ---------------------------------------------------------------------------------------------------- */

#define SEND(form)                                                                                                     \
    LEP_EXPORT int MPI_##form(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)        \
        RECORDED("MPI_" #form, MPI_##form(buffer, count, type, to, tag, comm), sent(count, type, to, tag, comm), )
SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)

static void keep(MPI_Request request, message what, bool receive, MPI_Comm comm, int64_t start_ns) {
    lep_request_keep(request, &(lep_request){what.peer, receive, what.tag, what.size_bytes, comm, start_ns});
}

#define ISEND(form)                                                                                                    \
    LEP_EXPORT int MPI_##form(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,        \
                              MPI_Request *request)                                                                    \
        RECORDED("MPI_" #form, MPI_##form(buffer, count, type, to, tag, comm, request),                                \
                 sent(count, type, to, tag, comm),                                                                     \
                 keep(*request, sent(count, type, to, tag, comm), false, comm, start_ns))
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
    return (message){lep_world_rank(comm, from), any_tag(tag), from == MPI_PROC_NULL ? 0 : bytes_of(count, type)};
}

LEP_EXPORT int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                         MPI_Request *request)
    RECORDED("MPI_Irecv", MPI_Irecv(buffer, count, type, from, tag, comm, request),
             expected(count, type, from, tag, comm),
             keep(*request, expected(count, type, from, tag, comm), true, comm, start_ns))

#ifdef LEP_RECORD_SMPI
    /* An MPI_Irecv of the program may be a persistent receive here, which simblas starts later (simblas/progress.hpp).
     */
    LEP_EXPORT int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                                 MPI_Request *request) {
    if (!lep_called_by_simblas(__builtin_return_address(0)))
        return lep_next_MPI_Recv_init(buffer, count, type, from, tag, comm, request);
    RECORDED("MPI_Irecv", MPI_Recv_init(buffer, count, type, from, tag, comm, request),
             expected(count, type, from, tag, comm),
             keep(*request, expected(count, type, from, tag, comm), true, comm, start_ns))
}

LEP_EXPORT int MPI_Start(MPI_Request *request) {
    if (lep_called_by_simblas(__builtin_return_address(0)))
        return lep_next_MPI_Start(request);
    RECORDED("MPI_Start", MPI_Start(request), NONE, )
}
#endif

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

/* Of a request that is over: a receive now knows its sender and its size. by_start_ns: of the call that found it so. */
static message finished(MPI_Request request, const MPI_Status *status, int64_t by_start_ns) {
    static int code;
    lep_request kept = lep_request_take(request);
    if (!kept.start_ns)
        return of_request(&kept);
    bool came = kept.receive && status && status->MPI_SOURCE >= 0;
    message what = came ? received(status, kept.comm) : of_request(&kept);
    lep_write_message(lep_code(&code, LEP_RECORD_MPI, LEP_RECORD_COMPLETED), kept.start_ns, kept.start_ns, what.peer,
                      (int)what.tag, by_start_ns);
    return what;
}

LEP_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before = *request;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Wait", MPI_Wait(request, status), finished(before, status, start_ns), )
}

enum { MANY = 256 }; /* requests whose handles are kept on the stack; of more only the number is known */

/* Bytes of all of them; the peer where they are one. */
static message finished_all(int count, const MPI_Request *before, const MPI_Status *statuses, int64_t by_start_ns) {
    message sum = NONE;
    for (int i = 0; i < count && i < MANY; i++) {
        message one = finished(before[i], statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i], by_start_ns);
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

/* Ours where the program wants none: only they tell who sent, and how much. */
#define STATUSES(statuses, count)                                                                                      \
    MPI_Status own[MANY];                                                                                              \
    if ((statuses) == MPI_STATUSES_IGNORE && (count) <= MANY)                                                          \
    (statuses) = own

LEP_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    STATUSES(statuses, count);
    RECORDED("MPI_Waitall", MPI_Waitall(count, requests, statuses), finished_all(count, before, statuses, start_ns), )
}

LEP_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Waitany", MPI_Waitany(count, requests, index, status),
             *index >= 0 && *index < MANY ? finished(before[*index], status, start_ns) : NONE, )
}

static message finished_some(int done, const int *indices, const MPI_Request *before, const MPI_Status *statuses,
                             int64_t by_start_ns) {
    message sum = NONE;
    for (int i = 0; i < done; i++) {
        if (indices[i] < 0 || indices[i] >= MANY)
            continue;
        const MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i];
        sum.size_bytes += finished(before[indices[i]], status, by_start_ns).size_bytes;
    }
    return sum;
}

LEP_EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    STATUSES(statuses, count);
    RECORDED("MPI_Waitsome", MPI_Waitsome(count, requests, done, indices, statuses),
             finished_some(*done, indices, before, statuses, start_ns), )
}

/* ---- probes ---------------------------------------------------------------------------------------------------- */

/* A probe is no message: those who count them between two moments want to know whether something happened. `found`
 * tells whether it found something; a look that did not is written in another way. */
#define PROBED(name, call, found, what, look)                                                                          \
    {                                                                                                                  \
        static int code;                                                                                               \
        if (!lep_call_begin())                                                                                         \
            return REAL(call);                                                                                         \
        int64_t start_ns = lep_clock_ns();                                                                             \
        int result = REAL(call);                                                                                       \
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
    PROBED("MPI_Test", MPI_Test(request, flag, status), *flag, finished(before, status, start_ns), NONE)
}

LEP_EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    STATUSES(statuses, count);
    PROBED("MPI_Testall", MPI_Testall(count, requests, flag, statuses), *flag,
           finished_all(count, before, statuses, start_ns), NONE)
}

LEP_EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    STATUSES(statuses, count);
    PROBED("MPI_Testsome", MPI_Testsome(count, requests, done, indices, statuses), *done > 0,
           finished_some(*done, indices, before, statuses, start_ns), NONE)
}

LEP_EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before[MANY];
    copy_handles(before, requests, count);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Testany", MPI_Testany(count, requests, index, flag, status), *flag,
           *index >= 0 && *index < MANY ? finished(before[*index], status, start_ns) : NONE, NONE)
}

#ifndef LEP_RECORD_SMPI /* there its loops cost no event a turn, and no row */
LEP_EXPORT int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Iprobe", MPI_Iprobe(from, tag, comm, flag, status), *flag, received(status, comm),
           ((message){lep_world_rank(comm, from), any_tag(tag), 0}))
}

#endif

LEP_EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Probe", MPI_Probe(from, tag, comm, status), true, received(status, comm), NONE)
}
