/* Ranks of any communicator as ranks of MPI_COMM_WORLD. */
#ifndef LEPAUTE_RECORD_WORLD_H
#define LEPAUTE_RECORD_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* LEP_RECORD_PROC_NULL for MPI_PROC_NULL, -1 for MPI_ANY_SOURCE and MPI_ROOT. */
int lep_world_rank(MPI_Comm comm, int rank);
/* The same number on all ranks of the communicator, 0 for MPI_COMM_WORLD, -1 between two groups: a hash of who they are
 * and, where its creation was seen, of what it was made from and when. */
int lep_world_communicator(MPI_Comm comm);
/* `made` was made from `comm` by all its ranks; MPI_COMM_NULL where this one is in none. */
void lep_world_made(MPI_Comm comm, MPI_Comm made);
/* Before the communicator's handle may mean another one. */
void lep_world_forget(MPI_Comm comm);

/* Who the ranks of a communicator are, also when its handle may mean another one already; NULL stands for
 * MPI_COMM_WORLD. Each that was held is to be released. */
typedef struct lep_members lep_members;
const lep_members *lep_members_hold(MPI_Comm comm);
const lep_members *lep_members_hold_again(const lep_members *members);
void lep_members_release(const lep_members *members);
/* As lep_world_rank. */
int lep_member(const lep_members *members, int rank);

#endif
