/* MPI, through its profiling interface: every call of the program writes a row. Here are messages between two ranks;
 * when requests are over is in record_requests.c. */
#include <mpi.h>

#include "record_calls.h"
#include "record_requests.h"

static uint16_t comm_bits(MPI_Comm comm) {
    return (uint16_t)lep_world_communicator(comm);
}

/* Nothing goes to MPI_PROC_NULL, nor comes from there. */
static message sent(int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    return (message){lep_world_rank(comm, peer), tag, peer == MPI_PROC_NULL ? 0 : bytes_of(count, type),
                     comm_bits(comm)};
}

static message received(const MPI_Status *status, MPI_Comm comm) {
    if (status->MPI_SOURCE < 0)
        return (message){lep_world_rank(comm, status->MPI_SOURCE), -1, 0, comm_bits(comm)};
    return (message){lep_world_rank(comm, status->MPI_SOURCE), status->MPI_TAG, bytes_received(status),
                     comm_bits(comm)};
}

static int any_tag(int tag) {
    return tag == MPI_ANY_TAG ? -1 : tag;
}

#define SEND(form)                                                                                                     \
    LEP_EXPORT int MPI_##form(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)        \
        RECORDED("MPI_" #form, MPI_##form(buffer, count, type, to, tag, comm), sent(count, type, to, tag, comm), )
SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)

static void keep(MPI_Request request, message what, bool receive, MPI_Comm comm, int64_t start_ns) {
    const lep_members *members = receive && what.peer == -1 ? lep_members_hold(comm) : NULL; /* released at its end */
    lep_request_keep(request, &(lep_request){what, receive, false, members, lep_recording ? start_ns : 0, 0});
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

LEP_EXPORT int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Recv", MPI_Recv(buffer, count, type, from, tag, comm, status), received(status, comm), )
}

/* The size is the room until the message is there. */
static message expected(int count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
    return (message){lep_world_rank(comm, from), any_tag(tag), from == MPI_PROC_NULL ? 0 : bytes_of(count, type),
                     comm_bits(comm)};
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
#else
        static void keep_persistent(MPI_Request request, message what, int code, bool receive, MPI_Comm comm) {
    const lep_members *members = receive && what.peer == -1 ? lep_members_hold(comm) : NULL;
    lep_persistent_keep(request, &(lep_request){what, receive, false, members, 0, code});
}

#define PERSISTENT(call, name, what, receive)                                                                          \
    {                                                                                                                  \
        static int code;                                                                                               \
        if (!lep_call_begin())                                                                                         \
            return REAL(call);                                                                                         \
        int result = REAL(call);                                                                                       \
        if (result == MPI_SUCCESS)                                                                                     \
            keep_persistent(*request, what, lep_code(&code, LEP_RECORD_MPI, name), receive, comm);                     \
        lep_call_end();                                                                                                \
        return result;                                                                                                 \
    }

#define SEND_INIT(form, name)                                                                                          \
    LEP_EXPORT int MPI_##form##_init(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                                     MPI_Request *request)                                                             \
        PERSISTENT(MPI_##form##_init(buffer, count, type, to, tag, comm, request), name,                               \
                   sent(count, type, to, tag, comm), false)
SEND_INIT(Send, "MPI_Isend")
SEND_INIT(Ssend, "MPI_Issend")
SEND_INIT(Bsend, "MPI_Ibsend")
SEND_INIT(Rsend, "MPI_Irsend")

LEP_EXPORT int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                             MPI_Request *request)
    PERSISTENT(MPI_Recv_init(buffer, count, type, from, tag, comm, request), "MPI_Irecv",
               expected(count, type, from, tag, comm), true)

        static int start(MPI_Request *request) {
    lep_request begun;
    int64_t start_ns = lep_starts();
    int result = PMPI_Start(request);
    int64_t end_ns = lep_ended();
    if (result == MPI_SUCCESS && lep_persistent_begin(*request, start_ns, &begun)) {
        if (lep_recording)
            lep_write_message(begun.code, start_ns, end_ns, begun.what.peer, (int)begun.what.tag, begun.what.size_bytes,
                              begun.what.comm);
        lep_messages++;
    }
    return result;
}

LEP_EXPORT int MPI_Start(MPI_Request *request) {
    if (!lep_call_begin())
        return PMPI_Start(request);
    int result = start(request);
    lep_call_end();
    return result;
}

/* One after the other, so that each has its time. */
LEP_EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
    if (!lep_call_begin())
        return PMPI_Startall(count, requests);
    int result = MPI_SUCCESS;
    for (int i = 0; i < count && result == MPI_SUCCESS; i++)
        result = start(&requests[i]);
    lep_call_end();
    return result;
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

LEP_EXPORT int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int out_tag, int from,
                                    int in_tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Sendrecv_replace", MPI_Sendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, status),
             sent(count, type, to, out_tag, comm), write_arrival(end_ns, received(status, comm)))
}

#ifndef LEP_RECORD_SMPI /* there its loops cost no event a turn, and no row */
LEP_EXPORT int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Iprobe", MPI_Iprobe(from, tag, comm, flag, status), *flag, received(status, comm),
           LOOKED(from, tag, comm))
}

#endif

LEP_EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Probe", MPI_Probe(from, tag, comm, status), true, received(status, comm), )
}

#ifndef LEP_RECORD_SMPI /* which has none */

static message found(MPI_Message handle, const MPI_Status *status, MPI_Comm comm) {
    message what = received(status, comm);
    if (handle != MPI_MESSAGE_NO_PROC)
        lep_message_keep(handle, what);
    return what;
}

LEP_EXPORT int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *handle, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Mprobe", MPI_Mprobe(from, tag, comm, handle, status), true, found(*handle, status, comm), )
}

LEP_EXPORT int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *handle, MPI_Status *status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Improbe", MPI_Improbe(from, tag, comm, flag, handle, status), *flag, found(*handle, status, comm),
           LOOKED(from, tag, comm))
}

/* Before the call: after it, another thread may be given the same handle. */
static message taken(MPI_Message handle) {
    return handle == MPI_MESSAGE_NO_PROC ? (message){LEP_RECORD_PROC_NULL, -1, 0, 0} : lep_message_take(handle);
}

LEP_EXPORT int MPI_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *handle, MPI_Status *status) {
    message what = taken(*handle);
    RECORDED("MPI_Mrecv", MPI_Mrecv(buffer, count, type, handle, status), what, )
}

LEP_EXPORT int MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *handle, MPI_Request *request) {
    message what = taken(*handle);
    RECORDED("MPI_Imrecv", MPI_Imrecv(buffer, count, type, handle, request), what,
             keep(*request, what, true, MPI_COMM_NULL, start_ns))
}

#endif
