#pragma once
// Collective operations over the point-to-point ones, as MPI libraries make them: each member of the communicator
// awaits the same operation, and the messages and their order are those of the algorithm that the name tells.
//
// Sources: Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1),
// 2005 (binomial tree, recursive doubling); Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 69(2), 2009 (ring); Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", IEEE TPDS 8(11), 1997; Hensgen, Finkel & Manber, "Two
// algorithms for barrier synchronization", IJPP 17(1), 1988 (dissemination); Pješivac-Grbović et al., "Performance
// analysis of MPI collective operations", Cluster Computing 10(2), 2007 (trees in segments, split binary tree).

#include "mpi/collectives_steps.hpp"

namespace lepaute::mpi {

/// What messages along a tree carry: all bytes, or (of a binomial tree) so many for each member of the subtree.
enum class Carried : std::uint8_t { whole, subtree };
enum class Direction : std::uint8_t { to_root, from_root };

/// MPI_Bcast, MPI_Scatter, MPI_Reduce and MPI_Gather along a tree, P - 1 messages, one after the other: of its children
/// a member serves the first or (last_first) the last before the others.
Task along_tree(Member me, double bytes, std::uint32_t root, Algorithm tree, Direction direction,
                Carried what = Carried::whole, bool last_first = false);

/// MPI_Bcast down a tree, where a member receives a segment while it passes on the one before (so many messages a
/// segment); a half down each side of a binary tree, exchanged at the end between the same places of both sides.
Task broadcast_tree(Member me, double bytes, std::uint32_t root, Shape shape);
Task broadcast_split_binary(Member me, double bytes, std::uint32_t root, double segment_bytes);

/// MPI_Reduce up the same trees, receiving from the next child while combining; as allreduce_across_cube(), with a
/// binomial gather the same way back. MPI_Gather posted at once, or (on_request) when the root has asked by an empty
/// message, for `first_bytes` (0: all), for which it waits before it asks the next one, and the rest.
Task reduce_tree(Member me, double bytes, std::uint32_t root, Shape shape);
Task reduce_rabenseifner(Member me, double bytes, std::uint32_t root);
Task gather_posted(Member me, double bytes, std::uint32_t root, bool on_request = false, double first_bytes = 0.0);

/// MPI_Allreduce as a reduction to member 0 and a broadcast from it: 2 (P - 1) messages.
Task allreduce_binomial(Member me, double bytes);

/// MPI_Allreduce as a reduce-scatter and an allgather around the ring, in P - 1 steps each, on P blocks of elements as
/// even as can be (the first ones one element longer): 2 P (P - 1) messages, empty ones included, and
/// 2 (P - 1) times the vector in bytes.
Task allreduce_ring(Member me, double bytes, double element_bytes = 1.0);

/// MPI_Allreduce by exchanges at distances 1, 2, 4, ... With T the largest power of two <= P and r = P - T, each even
/// member below 2r first gives its vector to the next one and gets the result from it at the end:
/// T log2(T) + 2r messages of the whole vector. rabenseifner: a reduce-scatter by exchanges of ever smaller halves, and
/// an allgather the same way back: 2 T log2(T) + 2r messages, and 2 (T - 1) / T times the vector in bytes for each
/// member but those that sit out. rabenseifner_halves: two of which one sits out first sum a half of it each.
Task allreduce_across_cube(Member me, double bytes, Algorithm algorithm);

/// MPI_Reduce_scatter of `bytes` to each member: by exchanges of ever smaller halves, first with the farthest partner
/// or (near_first: butterfly) the nearest, after which blocks change places; around the ring, where each member
/// receives a block while it combines another, P (P - 1) messages.
Task reduce_scatter_halving(Member me, double bytes, bool near_first);
Task reduce_scatter_ring(Member me, double bytes);

/// MPI_Barrier: in round i each member sends an empty message to the one 2^i further and receives from the one 2^i
/// before it (dissemination), P ceil(log2 P) messages; or by empty messages to the first member and back, or twice
/// around the ring.
Task barrier_dissemination(Member me);
Task barrier_recursive_doubling(Member me);
Task barrier_linear(Member me);
Task barrier_double_ring(Member me);

/// MPI_Allgather of `bytes` of each member: around the ring, P (P - 1) messages; by exchanges at distances 1, 2, 4,
/// ..., which double what a member has, P ceil(log2 P) messages (Bruck), or with partners at these distances, which a
/// power of two of members has (else Bruck's); of two blocks with both neighbours in turn, of an even number of members
/// (else around the ring).
Task allgather_ring(Member me, double bytes);
Task allgather_bruck(Member me, double bytes);
Task allgather_recursive_doubling(Member me, double bytes);
Task allgather_neighbours(Member me, double bytes);

/// MPI_Alltoall of `bytes` from each member to each other, P (P - 1) messages: with all posted at once, or those of
/// `at_once` partners (0: all); to the member i further and from the one i before, in step i; by exchanges of two
/// members at a time, of a power of two of them (else as before). alltoall_bruck: in round i all blocks for members
/// whose distance has bit i in one message, P ceil(log2 P) messages. Copies inside a member cost nothing.
Task alltoall_linear(Member me, double bytes, std::uint32_t at_once);
Task alltoall_pairwise(Member me, double bytes);
Task alltoall_by_exclusive_or(Member me, double bytes);
Task alltoall_bruck(Member me, double bytes);

} // namespace lepaute::mpi
