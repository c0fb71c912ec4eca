#include "point_to_point.h"

enum { TAG_THERE = 13, TAG_BACK };

/* MPI_PROC_NULL, with which all calls return at once, where there is none. */
static int partner_of(const lep_collective *with) {
    int partner = with->rank ^ 1;
    return partner < with->ranks ? partner : MPI_PROC_NULL;
}

static bool is_even(const lep_collective *with) {
    return with->rank % 2 == 0;
}

/* What goes to the partner: its block of what is sent. */
static const unsigned char *block_for(const lep_collective *with, int partner) {
    return with->send + (size_t)(partner == MPI_PROC_NULL ? 0 : partner) * (size_t)with->size_bytes;
}

static void send(lep_collective *with, int partner, int tag) {
    MPI_Send(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, tag, with->comm);
}

static void receive(lep_collective *with, int partner, int tag) {
    MPI_Recv(with->receive, with->size_bytes, MPI_BYTE, partner, tag, with->comm, MPI_STATUS_IGNORE);
}

static void call_send(lep_collective *with) {
    if (is_even(with))
        send(with, partner_of(with), TAG_THERE);
    else
        receive(with, partner_of(with), TAG_THERE);
}

static void call_sendrecv(lep_collective *with) {
    int partner = partner_of(with);
    MPI_Sendrecv(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->receive,
                 with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, MPI_STATUS_IGNORE);
}

static void call_ping_pong(lep_collective *with) {
    int partner = partner_of(with);
    if (is_even(with)) {
        send(with, partner, TAG_THERE);
        receive(with, partner, TAG_BACK);
    } else {
        receive(with, partner, TAG_THERE);
        send(with, partner, TAG_BACK);
    }
}

/* Nonblocking, or persistent: the calls differ in their names alone. */
#define WITH_REQUESTS(form, SEND, RECEIVE)                                                                             \
    static int form##_send(lep_collective *with, MPI_Request *requests) {                                              \
        int partner = partner_of(with);                                                                                \
        if (is_even(with))                                                                                             \
            SEND(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, requests);      \
        else                                                                                                           \
            RECEIVE(with->receive, with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, requests);              \
        return 1;                                                                                                      \
    }                                                                                                                  \
    static int form##_sendrecv(lep_collective *with, MPI_Request *requests) {                                          \
        int partner = partner_of(with);                                                                                \
        RECEIVE(with->receive, with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, &requests[0]);              \
        SEND(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, &requests[1]);      \
        return 2;                                                                                                      \
    }
WITH_REQUESTS(start, MPI_Isend, MPI_Irecv)
WITH_REQUESTS(init, MPI_Send_init, MPI_Recv_init)

/* A stream of messages in the directions that this rank has. */
static void stream(lep_collective *with, bool out, bool in) {
    int partner = partner_of(with), count = 0;
    MPI_Request requests[2 * LEP_STREAM];
    MPI_Status statuses[2 * LEP_STREAM]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array without elements */
    for (int i = 0; in && i < LEP_STREAM; i++)
        MPI_Irecv(with->receive, with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, &requests[count++]);
    for (int i = 0; out && i < LEP_STREAM; i++)
        MPI_Isend(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm,
                  &requests[count++]);
    MPI_Waitall(count, requests, statuses);
}

static void call_stream(lep_collective *with) {
    int partner = partner_of(with);
    stream(with, is_even(with), !is_even(with));
    if (is_even(with))
        MPI_Recv(NULL, 0, MPI_BYTE, partner, TAG_BACK, with->comm, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, partner, TAG_BACK, with->comm);
}

static void call_bistream(lep_collective *with) {
    stream(with, true, true);
}

static bool from_partner(const lep_collective *with) {
    int partner = partner_of(with);
    return partner == MPI_PROC_NULL || lep_collective_block_is(with, 0, partner, with->rank);
}

static bool from_even_partner(const lep_collective *with) {
    return is_even(with) || from_partner(with);
}

const lep_collective_operation lep_point_to_point[] = {
    {.name = "Send", .call = call_send, .start = start_send, .init = init_send, .right = from_even_partner},
    {.name = "Sendrecv", .call = call_sendrecv, .start = start_sendrecv, .init = init_sendrecv, .right = from_partner},
    {.name = "PingPong", .call = call_ping_pong, .right = from_partner},
    {.name = "Bandwidth", .call = call_stream, .right = from_even_partner},
    {.name = "Bibandwidth", .call = call_bistream, .right = from_partner},
};
const int lep_point_to_point_count = sizeof lep_point_to_point / sizeof *lep_point_to_point;
