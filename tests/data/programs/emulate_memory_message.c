#define MIB (1 << 20)
int main(int argc, char **argv) {
    begin(&argc, &argv);
    double *large = malloc(8 * MIB), control[4] = {0}, got[4] = {0};
    for (int i = 0; i < 4; i++) control[i] = large[i] = 10 * rank + i;
    if (rank == 0) {
        MPI_Send(large, MIB, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);   /* folded to private, to folded */
        MPI_Send(control, 4, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);     /* private to private */
        MPI_Send(control, 4, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD);     /* private to folded */
        MPI_Recv(got, 4, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%g %g\n", got[0], got[3]);
    } else {
        double *mine = malloc(8 * MIB);
        MPI_Recv(mine, MIB, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(got, 4, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%g %g\n", got[0], got[3]);
        MPI_Recv(mine, 4, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(got, 4, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
