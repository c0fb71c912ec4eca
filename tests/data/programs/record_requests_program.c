
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MANY = 600 };
static char out[64], in[MANY][64];
static int rank, other;
static MPI_Request r[MANY];

static void freed(void) {
    for (int i = 0; i < 50; i++) {
        MPI_Isend(out, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, r);
        MPI_Request_free(r);
        MPI_Recv(in, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 20; i++) {
        MPI_Irecv(in, 64, MPI_CHAR, other, 7, MPI_COMM_WORLD, r);
        MPI_Isend(out, 64, MPI_CHAR, other, 7, MPI_COMM_WORLD, r + 1);
        MPI_Wait(r, MPI_STATUS_IGNORE);
        MPI_Wait(r + 1, MPI_STATUS_IGNORE);
    }
}

static void unrecorded(void) {
    for (int i = 0; i < 20; i++) {
        MPI_Irecv(in, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, r);
        MPI_Isend(out, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, r + 1);
        MPI_Pcontrol(0);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE); /* posted in the trace, ended outside */
        MPI_Irecv(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, r);
        MPI_Isend(out, 64, MPI_CHAR, other, 7, MPI_COMM_WORLD, r + 1);
        MPI_Pcontrol(1);
        MPI_Wait(r, MPI_STATUS_IGNORE); /* and the other way round */
        MPI_Wait(r + 1, MPI_STATUS_IGNORE);
    }
    MPI_Pcontrol(0); /* to the end */
}

static void many(void) {
    for (int i = 0; i < MANY / 2; i++) {
        MPI_Irecv(in[i], 64, MPI_CHAR, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, r + i);
        MPI_Isend(out, i % 64, MPI_CHAR, other, i, MPI_COMM_WORLD, r + MANY / 2 + i);
    }
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 64, MPI_CHAR, other, 999, MPI_COMM_WORLD, r);
    MPI_Send(out, 64, MPI_CHAR, other, 999, MPI_COMM_WORLD);
    MPI_Wait(r, MPI_STATUS_IGNORE);
}

static void outlived(void) {
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Irecv(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 5, turned, r);
    MPI_Send(out, 4, MPI_CHAR, rank, 5, turned); /* whom the world calls `other` */
    MPI_Comm_free(&turned);
    MPI_Wait(r, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, r);
    MPI_Cancel(r);
    MPI_Wait(r, MPI_STATUS_IGNORE);
}

static void others(void) {
    MPI_Comm line, node, both;
    MPI_Message message;
    int sizes[] = {2}, wraps[] = {0}, found = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, wraps, 0, &line);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, 9, &both);
    MPI_Sendrecv_replace(in, 16, MPI_CHAR, other, 1, other, 1, line, MPI_STATUS_IGNORE);
    MPI_Isend(out, 32, MPI_CHAR, other, 3, line, r);
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, line, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 64, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Isend(out, 48, MPI_CHAR, other, 4, line, r + 1);
    while (!found)
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, line, &found, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, 64, MPI_CHAR, &message, r + 2);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
}

static void ends(void) {
    int index, flag = 0, done, indices[2];
    MPI_Comm grid, row;
    MPI_Request again[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Send_init(out, 8, MPI_CHAR, other, 50, MPI_COMM_WORLD, again);
    MPI_Recv_init(in, 64, MPI_CHAR, other, 50, MPI_COMM_WORLD, again + 1);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, again);
        MPI_Waitall(2, again, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(again);
    MPI_Request_free(again + 1);
    MPI_Irecv(in, 2, MPI_CHAR, other, 60, MPI_COMM_WORLD, r); /* too short: the wait fails */
    MPI_Send(out, 8, MPI_CHAR, other, 60, MPI_COMM_WORLD);
    MPI_Wait(r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 6; i++) { /* each way to end one, after all of the above */
        MPI_Irecv(in, 64, MPI_CHAR, other, 70 + i, MPI_COMM_WORLD, r);
        MPI_Send(out, 10 + i, MPI_CHAR, other, 70 + i, MPI_COMM_WORLD);
        flag = done = 0;
        if (i == 0)
            MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE);
        if (i == 1)
            MPI_Waitsome(1, r, &done, indices, MPI_STATUSES_IGNORE);
        while (i == 2 && !flag)
            MPI_Testany(1, r, &index, &flag, MPI_STATUS_IGNORE);
        while (i == 3 && !done)
            MPI_Testsome(1, r, &done, indices, MPI_STATUSES_IGNORE);
        while (i == 4 && !flag)
            MPI_Testall(1, r, &flag, MPI_STATUSES_IGNORE);
        while (i == 5 && !flag)
            MPI_Test(r, &flag, MPI_STATUS_IGNORE);
    }
    int sizes[] = {1, 2}, wraps[] = {0, 0}, keep[] = {0, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, wraps, 0, &grid);
    MPI_Cart_sub(grid, keep, &row);
    MPI_Sendrecv(out, 5, MPI_CHAR, other, 80, in, 64, MPI_CHAR, other, 80, row, MPI_STATUS_IGNORE);
}

static void full(void) {
    struct rlimit limit = {3 << 20, 3 << 20}; /* one piece of the file is made in MPI_Init, of 2 MiB */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 100000; i++)
        MPI_Barrier(MPI_COMM_SELF);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    void (*parts[])(void) = {freed, unrecorded, many, outlived, others, ends, full};
    parts[atoi(argv[1])]();
    MPI_Finalize();
    return 0;
}
