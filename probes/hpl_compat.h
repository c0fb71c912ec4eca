/* Forced (-include) into each file of HPL: its packing routines call two names of MPI-1 that today's MPI has dropped.
 * HPL's own way around them (HPL_NO_MPI_DATATYPE) copies L in every panel, which is not the program that people run. */
#ifndef LEPAUTE_HPL_COMPAT_H
#define LEPAUTE_HPL_COMPAT_H

#include <mpi.h>

#define MPI_Address(location, address) MPI_Get_address((location), (address))
#define MPI_Type_struct(count, lengths, displacements, types, made)                                                    \
    MPI_Type_create_struct((count), (lengths), (displacements), (types), (made))

#endif
