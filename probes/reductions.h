/* Reductions that probes measure: datatypes and operators by MPI's names, the vector of each rank, and what must come
 * of reducing them. */
#ifndef LEPAUTE_REDUCTIONS_H
#define LEPAUTE_REDUCTIONS_H

#include <mpi.h>
#include <stdbool.h>

typedef enum { LEP_BITS, LEP_INTEGER, LEP_FLOATING } lep_number;

typedef struct {
    const char *name;
    MPI_Datatype type;
    int bytes;
    lep_number number;
} lep_element;

typedef enum { LEP_SUM, LEP_PROD, LEP_MAX, LEP_MIN, LEP_BAND, LEP_BOR, LEP_BXOR, LEP_LAND, LEP_LOR } lep_combination;

typedef struct {
    const char *name;
    MPI_Op op;
    lep_combination combination;
} lep_operator;

typedef struct {
    const lep_element *element;
    const lep_operator *with;
} lep_reduction;

/* Fails, one line, for a name that is none of the table's, and where MPI does not define the operator. */
lep_reduction lep_reduction_named(const char *datatype, const char *op);

/* Elements of the vector of a rank: small numbers, whose reduction over ranks is exact. */
void lep_reduction_fill(const lep_reduction *reduction, void *vector, int rank, int elements);
/* Whether a vector is the reduction over ranks `first` to `last` of their elements from `offset` on. */
bool lep_reduction_is(const lep_reduction *reduction, const void *vector, int first, int last, int offset,
                      int elements);

#endif
