#define MIB (1 << 20)
int main(int argc, char **argv) {
    begin(&argc, &argv);
    int *small = malloc(64), *large = malloc(2 * MIB);
    small[5] = large[5] = 100 + rank;
    MPI_Barrier(MPI_COMM_WORLD);
    small = realloc(small, 4 * MIB), large = realloc(large, 4 * MIB);
    printf("%d %d\n", small[5], large[5]);
    free(small), free(large);
    MPI_Finalize();
    return 0;
}
