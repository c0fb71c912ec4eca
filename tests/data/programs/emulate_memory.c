#define SIZE (8 << 20)
static void *with_malloc(void) { return malloc(SIZE); }
static void *with_calloc(void) { return calloc(SIZE / 8, 8); }
static void *with_realloc(void) { return realloc(NULL, SIZE); }
static void *with_memalign(void) {
    void *data = NULL;
    return posix_memalign(&data, 256, SIZE) == 0 ? data : NULL;
}
static void *with_aligned(void) { return aligned_alloc(4096, SIZE); }
int main(int argc, char **argv) {
    begin(&argc, &argv);
    const char *how = argv[1];
    volatile char *data = !strcmp(how, "malloc") ? with_malloc() :
                          !strcmp(how, "calloc") ? with_calloc() :
                          !strcmp(how, "realloc") ? with_realloc() :
                          !strcmp(how, "memalign") ? with_memalign() : with_aligned();
    const long at[] = {0, SIZE / 2, SIZE - 1};
    int own = 0;
    if (!strcmp(how, "calloc") && data[SIZE / 4] != 0) puts("not zero");
    for (int i = 0; i < 3; i++) data[at[i]] = 1 + rank;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) own += (data[at[i]] == 1 + rank) << i;
    int all;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD);
    if (rank == 0) printf("%d\n", all);
    MPI_Barrier(MPI_COMM_WORLD);
    free((void *)data);
    MPI_Finalize();
    return 0;
}
