/* C and C++: links only where the compiler knows that nothing else is where malloc allocates. */
#include <mpi.h>
#include <stdlib.h>

void seen(void); /* is nowhere: no call of it may be left */
int value;

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int *fresh = (int *)malloc(sizeof *fresh);
    value = argc;
    *fresh = 2;
    if (value != argc)
        seen();
    free(fresh);
    MPI_Finalize();
    return 0;
}
