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

static int start_send(lep_collective *with, MPI_Request *requests) {
    int partner = partner_of(with);
    if (is_even(with))
        MPI_Isend(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, requests);
    else
        MPI_Irecv(with->receive, with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, requests);
    return 1;
}

static void call_sendrecv(lep_collective *with) {
    int partner = partner_of(with);
    MPI_Sendrecv(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->receive,
                 with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, MPI_STATUS_IGNORE);
}

static int start_sendrecv(lep_collective *with, MPI_Request *requests) {
    int partner = partner_of(with);
    MPI_Irecv(with->receive, with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, &requests[0]);
    MPI_Isend(block_for(with, partner), with->size_bytes, MPI_BYTE, partner, TAG_THERE, with->comm, &requests[1]);
    return 2;
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

static bool from_partner(const lep_collective *with) {
    int partner = partner_of(with);
    return partner == MPI_PROC_NULL || lep_collective_block_is(with, 0, partner, with->rank);
}

static bool from_even_partner(const lep_collective *with) {
    return is_even(with) || from_partner(with);
}

const lep_collective_operation lep_point_to_point[] = {
    {"Send", false, call_send, start_send, from_even_partner},
    {"Sendrecv", false, call_sendrecv, start_sendrecv, from_partner},
    {"PingPong", false, call_ping_pong, NULL, from_partner},
};
const int lep_point_to_point_count = sizeof lep_point_to_point / sizeof *lep_point_to_point;
