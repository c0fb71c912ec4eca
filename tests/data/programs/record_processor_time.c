/* Computes for times that it measures itself, and ends as it is told: whole, aborts, exits, threads. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static volatile double value = 1.0;

static double on_core_s(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec + 1e-9 * used.tv_nsec;
}

static double compute(double seconds) {
    double start_s = on_core_s();
    while (on_core_s() - start_s < seconds)
        for (int i = 0; i < 10000; i++)
            value = value * 1.0000001 + 1e-9;
    return on_core_s() - start_s;
}

static void exchange(int polls) {
    static char in[8192], out[8192];
    MPI_Request both[2];
    int done = 0;
    MPI_Irecv(in, sizeof in, MPI_BYTE, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, sizeof out, MPI_BYTE, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &both[1]);
    if (!polls)
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    while (polls && !done)
        MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
}

static void *receive(void *started) {
    int got;
    *(volatile int *)started = 1;
    MPI_Recv(&got, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void *wait_for_end(void *unused) {
    sleep(1000);
    return unused;
}

int main(int count, char **words) {
    int level;
    const char *how = words[1];
    pthread_t early;
    if (!strcmp(how, "early"))
        pthread_create(&early, NULL, wait_for_end, NULL);
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double own_s = 0.0, most_s = 0.0;
    if (!strcmp(how, "threads")) {
        pthread_t other;
        volatile int started = 0;
        pthread_create(&other, NULL, receive, (void *)&started);
        while (!started)
            usleep(1000);
        usleep(100000); /* the other one is in its receive */
        MPI_Send(&rank, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
        pthread_join(other, NULL);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < 20; i++) {
        own_s += compute(0.01);
        exchange(i % 2 && strcmp(how, "aborts"));
        if (!strcmp(how, "sleeps"))
            usleep(5000);
    }
    if (!strcmp(how, "aborts") && rank == 0) {
        for (int i = 0; i < 440; i++)
            MPI_Send(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Send(&rank, 1, MPI_INT, 1, 7, MPI_COMM_WORLD); /* nobody receives it */
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (!strcmp(how, "exits"))
        exit(0);
    MPI_Reduce(&own_s, &most_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.6f\n", most_s);
    MPI_Finalize();
    return 0;
}
