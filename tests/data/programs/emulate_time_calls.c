extern double PMPI_Wtime(void);
#define CHECK(name, call)                                                                          \
    do {                                                                                           \
        double before = PMPI_Wtime(); /* SimGrid's own clock, which does not know what is pending */ \
        dgemm(100, 100, 100);                                                                      \
        MPI_##name call;                                                                           \
        printf("%s %.17g\n", #name, PMPI_Wtime() - before);                                       \
    } while (0)
int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm self = MPI_COMM_SELF, made;
    MPI_Request r, other;
    MPI_Status status;
    int a[4] = {0}, b[4] = {0}, flag, at, one = 1, none = 0;
    MPI_Datatype type = MPI_INT;
    CHECK(Isend, (a, 1, type, 0, 0, self, &r));
    CHECK(Iprobe, (0, 0, self, &flag, &status));
    CHECK(Probe, (0, 0, self, &status));
    CHECK(Irecv, (b, 1, type, 0, 0, self, &other));
    CHECK(Test, (&r, &flag, &status));
    CHECK(Wait, (&other, &status));
    MPI_Wait(&r, &status);
    MPI_Irecv(b, 1, type, 0, 0, self, &r);
    CHECK(Send, (a, 1, type, 0, 0, self));
    CHECK(Waitall, (1, &r, &status));
    MPI_Irecv(b, 1, type, 0, 0, self, &r);
    CHECK(Ssend, (a, 1, type, 0, 0, self));
    CHECK(Waitany, (1, &r, &at, &status));
    MPI_Irecv(b, 1, type, 0, 0, self, &r);
    CHECK(Issend, (a, 1, type, 0, 0, self, &other));
    CHECK(Testall, (1, &other, &flag, &status));
    CHECK(Waitsome, (1, &r, &at, &flag, &status));
    MPI_Wait(&other, &status);
    MPI_Isend(a, 1, type, 0, 0, self, &r);
    CHECK(Recv, (b, 1, type, 0, 0, self, &status));
    MPI_Wait(&r, &status);
    CHECK(Sendrecv, (a, 1, type, 0, 0, b, 1, type, 0, 0, self, &status));
    CHECK(Sendrecv_replace, (a, 1, type, 0, 0, 0, 0, self, &status));
    MPI_Send_init(a, 1, type, 0, 0, self, &r);
    MPI_Irecv(b, 1, type, 0, 0, self, &other);
    CHECK(Start, (&r));
    MPI_Wait(&r, &status);
    MPI_Wait(&other, &status);
    CHECK(Barrier, (self));
    CHECK(Bcast, (a, 1, type, 0, self));
    CHECK(Reduce, (a, b, 1, type, MPI_SUM, 0, self));
    CHECK(Allreduce, (a, b, 1, type, MPI_SUM, self));
    CHECK(Reduce_scatter, (a, b, &one, type, MPI_SUM, self));
    CHECK(Scan, (a, b, 1, type, MPI_SUM, self));
    CHECK(Exscan, (a, b, 1, type, MPI_SUM, self));
    CHECK(Gather, (a, 1, type, b, 1, type, 0, self));
    CHECK(Gatherv, (a, 1, type, b, &one, &none, type, 0, self));
    CHECK(Scatter, (a, 1, type, b, 1, type, 0, self));
    CHECK(Scatterv, (a, &one, &none, type, b, 1, type, 0, self));
    CHECK(Allgather, (a, 1, type, b, 1, type, self));
    CHECK(Allgatherv, (a, 1, type, b, &one, &none, type, self));
    CHECK(Alltoall, (a, 1, type, b, 1, type, self));
    CHECK(Alltoallv, (a, &one, &none, type, b, &one, &none, type, self));
    CHECK(Alltoallw, (a, &one, &none, &type, b, &one, &none, &type, self));
    CHECK(Ibcast, (a, 1, type, 0, self, &r));
    MPI_Wait(&r, &status);
    CHECK(Comm_split, (self, 0, 0, &made));
    CHECK(Comm_free, (&made));
    MPI_Win window;
    CHECK(Win_create, (a, sizeof a, sizeof(int), MPI_INFO_NULL, self, &window));
    CHECK(Win_fence, (0, window));
    CHECK(Put, (b, 1, type, 0, 0, 1, type, window));
    CHECK(Win_free, (&window));
    MPI_Finalize();
    return 0;
}
