/* Sorts numbers by sample sort, some rounds: quicksort of what a rank has, and MPI_Alltoallv of what belongs elsewhere. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *left, const void *right) {
    unsigned one = *(const unsigned *)left, other = *(const unsigned *)right;
    return (one > other) - (one < other);
}

int main(int argc, char **argv) {
    enum { COUNT = 1000000, ROUNDS = 5, MOST_RANKS = 64 };
    int rank, ranks, to[MOST_RANKS], to_at[MOST_RANKS], from[MOST_RANKS], from_at[MOST_RANKS], received = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned *numbers = malloc(COUNT * sizeof *numbers), *sorted = malloc(2 * COUNT * sizeof *sorted);
    if (ranks > MOST_RANKS || !numbers || !sorted)
        MPI_Abort(MPI_COMM_WORLD, 1);
    srand((unsigned)rank + 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = (unsigned)rand();
        qsort(numbers, COUNT, sizeof *numbers, compare);
        for (int other = 0, i = 0; other < ranks; other++) {
            unsigned end = (unsigned)((double)RAND_MAX * (other + 1) / ranks);
            to_at[other] = i;
            while (i < COUNT && (numbers[i] <= end || other == ranks - 1))
                i++;
            to[other] = i - to_at[other];
        }
        MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
        received = 0;
        for (int other = 0; other < ranks; other++) {
            from_at[other] = received;
            received += from[other];
        }
        if (received > 2 * COUNT)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Alltoallv(numbers, to, to_at, MPI_UNSIGNED, sorted, from, from_at, MPI_UNSIGNED, MPI_COMM_WORLD);
        qsort(sorted, (size_t)received, sizeof *sorted, compare);
    }
    printf("rank %d has %d numbers\n", rank, received);
    MPI_Finalize();
    return 0;
}
