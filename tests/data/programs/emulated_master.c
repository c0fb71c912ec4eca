/* Rank 0 gives tasks of some floating-point numbers to those that ask. */
int main(int argc, char **argv) {
    begin(&argc, &argv);
    double task[8] = {0};
    MPI_Status status;
    for (int given = 0; rank == 0 && given < 200 + ranks - 1; given++) {
        MPI_Recv(task, 8, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        MPI_Send(task, 8, MPI_DOUBLE, status.MPI_SOURCE, given < 200 ? 1 : 2, MPI_COMM_WORLD);
    }
    while (rank > 0) {
        MPI_Send(task, 8, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(task, 8, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == 2)
            break;
        dgemm(20, 20, 20);
    }
    MPI_Finalize();
    return 0;
}
