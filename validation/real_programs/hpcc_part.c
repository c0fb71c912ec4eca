/* One benchmark of HPC Challenge, several times: hpcc itself runs all of them, some for a given time.
 *
 *   hpcc_part fft|ptrans|random [times]      sizes are those of hpccinf.txt in the working folder */
#include <hpcc.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    static HPCC_Params parameters;
    static const struct {
        const char *name;
        int (*run)(HPCC_Params *);
    } parts[] = {{"fft", HPCC_MPIFFT}, {"ptrans", PTRANS}, {"random", HPCC_MPIRandomAccess}};
    int found = -1, times = argc > 2 ? atoi(argv[2]) : 1, failed = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; argc > 1 && i < 3; i++)
        if (strcmp(argv[1], parts[i].name) == 0)
            found = i;
    if (found < 0 || HPCC_Init(&parameters)) {
        fprintf(stderr, "hpcc_part fft|ptrans|random [times]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < times; i++)
        failed |= parts[found].run(&parameters);
    MPI_Finalize();
    return failed || parameters.Failure;
}
