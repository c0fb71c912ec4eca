/* Linked into a program for emulations with -Wl,--wrap=MPI_Send and so on for all names below: before its k-th call a
 * rank computes as long as the file LEARNT_SECONDS says: int64_t of where each rank's seconds begin, and of their end,
 * then the seconds before each of its calls. Without the variable nothing is charged. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct lepaute_routine {
    const char *name, *kernel;
};
extern const struct lepaute_routine lepaute_routines[];
extern const int lepaute_routine_count;
extern void lepaute_charge(int routine, double m, double n, double k, double flops);

static double *seconds, rate_flops; /* of this rank: SMPI gives each its own globals */
static int64_t count, passed;
static int routine;

static void begin(const char* path) {
    int ranks, rank;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int64_t bounds[2];
    FILE* file = fopen(path, "rb");
    if (!file || fseek(file, 8L * rank, SEEK_SET) || fread(bounds, 8, 2, file) != 2)
        abort();
    count = bounds[1] - bounds[0];
    seconds = malloc(8 * (size_t)count + 8);
    if (fseek(file, 8L * (ranks + 1 + bounds[0]), SEEK_SET) || fread(seconds, 8, (size_t)count, file) != (size_t)count)
        abort();
    fclose(file);
    while (routine < lepaute_routine_count && *lepaute_routines[routine].kernel)
        routine++; /* charged by operations */
    double before_s = MPI_Wtime();
    lepaute_charge(routine, 0, 0, 0, 1e6);
    rate_flops = 1e6 / (MPI_Wtime() - before_s);
}

void learnt_charge(void) {
    static int begun;
    const char* path = getenv("LEARNT_SECONDS");
    if (!path)
        return;
    if (!begun++)
        begin(path);
    if (passed == count) {
        fprintf(stderr, "more calls than LEARNT_SECONDS has\n");
        abort();
    }
    if (seconds[passed] > 0.0)
        lepaute_charge(routine, 0, 0, 0, seconds[passed] * rate_flops);
    passed++;
}

#define CHARGED(name)                                                                                                  \
    __asm__(".globl __wrap_" #name "\n__wrap_" #name ":\n"                                                             \
            "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %rax\n"                              \
            "call learnt_charge@PLT\n"                                                                                 \
            "pop %rax\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"                                     \
            "jmp __real_" #name "@PLT\n")
#define BOTH(c, fortran)                                                                                               \
    CHARGED(MPI_##c);                                                                                                  \
    CHARGED(mpi_##fortran##_)
BOTH(Send, send);
BOTH(Isend, isend);
BOTH(Recv, recv);
BOTH(Irecv, irecv);
BOTH(Sendrecv, sendrecv);
BOTH(Wait, wait);
BOTH(Waitall, waitall);
BOTH(Barrier, barrier);
BOTH(Bcast, bcast);
BOTH(Reduce, reduce);
BOTH(Allreduce, allreduce);
BOTH(Gather, gather);
BOTH(Allgather, allgather);
BOTH(Alltoall, alltoall);
BOTH(Alltoallv, alltoallv);
BOTH(Comm_split, comm_split);
BOTH(Comm_dup, comm_dup);
BOTH(Cart_create, cart_create);
