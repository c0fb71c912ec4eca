/* Times of messages between ranks of a simulated machine, which have one clock.
   Arguments: triples "from:to:bytes"; messages of one argument, separated by commas, are sent at the same time.
   Prints a line for each message: from, to, bytes, seconds from before MPI_Send until after MPI_Recv. Globals are
   shared by all ranks: run without privatisation. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double sent_s[4096], received_s[4096];

static void sleep_until(double date_s) {
    const double wait_s = date_s - MPI_Wtime();
    const struct timespec wait = {(time_t)wait_s, (long)((wait_s - (double)(time_t)wait_s) * 1e9 + 0.5)};
    nanosleep(&wait, NULL);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char* buffer = malloc(1 << 24);
    for (int i = 1; i < argc; ++i) {
        MPI_Request request = MPI_REQUEST_NULL;
        int number = 0, mine = -1, incoming = -1;
        MPI_Barrier(MPI_COMM_WORLD);
        for (const char* at = argv[i]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL, ++number) {
            int from, to, bytes;
            if (sscanf(at, "%d:%d:%d", &from, &to, &bytes) != 3)
                MPI_Abort(MPI_COMM_WORLD, 1);
            if (to == rank) {
                MPI_Irecv(buffer, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, &request);
                incoming = number;
            }
            if (from == rank)
                mine = number;
        }
        if (mine >= 0 && incoming >= 0)
            MPI_Abort(MPI_COMM_WORLD, 2); /* a rank that does both would delay one by the other */
        if (mine >= 0)                    /* until all receives are posted; to the same date on all ranks */
            sleep_until(10.0 * i + 10.0);
        number = 0;
        for (const char* at = argv[i]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL, ++number) {
            int from, to, bytes;
            sscanf(at, "%d:%d:%d", &from, &to, &bytes);
            if (number == mine) {
                sent_s[number] = MPI_Wtime();
                MPI_Send(buffer, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
                sleep_until(10.0 * i + 15.0); /* the messages of the barrier would share links with those under way */
            }
        }
        if (incoming >= 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            received_s[incoming] = MPI_Wtime();
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            for (int n = 0; n < number; ++n) {
                int from, to, bytes;
                const char* at = argv[i];
                for (int k = 0; k < n; ++k)
                    at = strchr(at, ',') + 1;
                sscanf(at, "%d:%d:%d", &from, &to, &bytes);
                printf("%d %d %d %.17g\n", from, to, bytes, received_s[n] - sent_s[n]);
            }
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
