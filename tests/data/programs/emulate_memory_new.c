
#include <mpi.h>
#include <cstdio>
#include <memory>
#include <vector>
extern "C" char *from_new() { return new char[8 << 20]; }
extern "C" char *from_other() { return new char[8 << 20]; }
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::unique_ptr<char[]> one(from_new()), other(from_other());
    std::vector<double> numbers(1 << 20, rank); // std::allocator, whose calls are the program's own
    one[5] = other[5] = static_cast<char>(1 + rank);
    MPI_Barrier(MPI_COMM_WORLD);
    const int own = (one[5] == 1 + rank) + 2 * (other[5] == 1 + rank) + 4 * (numbers[7] == rank);
    int all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%d\n", all);
    MPI_Finalize();
}
