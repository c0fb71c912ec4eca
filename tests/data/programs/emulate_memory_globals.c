static int mine = 5;
int main(int argc, char **argv) {
    begin(&argc, &argv);
    mine += rank;
    MPI_Barrier(MPI_COMM_WORLD);
    int sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1 || rank == 0) printf("%d\n", sum);
    MPI_Finalize();
    return 0;
}
