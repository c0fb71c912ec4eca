"""How fast a node copies memory, by size: a short C program, a design, and single measurements without averaging."""

import lepaute as lp

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
int main(int argc, char **argv)
{
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    char *from = malloc(size), *to = malloc(size);
    struct timespec start, end;
    if (from == NULL || to == NULL) return 1;
    memset(from, 1, size);
    memset(to, 2, size);
    clock_gettime(CLOCK_MONOTONIC, &start);
    memcpy(to, from, size);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f\n", end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec));
    return to[size - 1] != 1;
}
"""


class MemoryCopy(lp.Job):
    def design(self):
        sizes = {"size_bytes": [2**power for power in range(10, 25, 2)]}
        return lp.design.full_factorial(sizes, replications=int(self.parameters.get("replications", 5)), seed=self.seed)

    def setup(self):
        self.install("gcc", "libc6-dev")
        self.nodes.write("copy.c", PROGRAM)
        self.nodes.run("gcc", "-O2", "copy.c", "-o", "copy")

    def run(self):
        for row in self.rows():
            for node, result in self.nodes.run("./copy", row["size_bytes"]).items():
                self.record(node=node, duration_s=float(result.stdout))
