/* What the operands of a kernel hold: some processors are slower on numbers that flip more bits. */
#ifndef LEPAUTE_CONTENT_H
#define LEPAUTE_CONTENT_H

#include "probe_common.h"

typedef struct {
    enum { LEP_RANDOM, LEP_CONSTANT, LEP_SEQUENTIAL, LEP_MASKED } kind;
    double value; /* of LEP_CONSTANT */
    int bits;     /* of LEP_MASKED: how many of the 53 are 0 */
} lep_content;

/* random, constant, constant:VALUE, sequential or masked:BITS; false for anything else. */
bool lep_content_parse(const char *text, lep_content *content);

/* random: uniform in [-0.5, 0.5); masked: the same numbers, of whose 53 bits the lowest are 0, so that masked:0 is
 * random and masked:53 is constant; sequential: from -0.5 to 0.5 over the `count` values. */
void lep_content_fill(const lep_content *content, lep_random *random, double *values, size_t count);

#endif
