#pragma once
// An operation of a program that was laid down.

#include "models/words.hpp"
#include "mpi/collectives_steps.hpp"

#include <cstdint>

namespace lepaute::program {

enum class Code : std::uint8_t {
    send,
    ssend,
    receive,
    isend,
    irecv,
    waitall,
    waitany,
    probe,
    exchange,
    compute,
    step,
    barrier,
    broadcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    alltoall,
    reduce_scatter
};
constexpr auto words_of(Code /*enum*/) noexcept {
    return words_in_order<Code>("send", "ssend", "receive", "isend", "irecv", "waitall", "waitany", "probe", "exchange",
                                "compute", "step", "barrier", "bcast", "reduce", "allreduce", "gather", "scatter",
                                "allgather", "alltoall", "reduce_scatter");
}
[[nodiscard]] constexpr bool is_collective(Code code) noexcept { return code >= Code::barrier; }

using mpi::Algorithm;

/// One operation, of any rank; several ranks and steps may share it.
struct Op {
    Code code = Code::step;
    Algorithm algorithm = Algorithm::usual;
    std::uint32_t peer = mpi::any; // the rank sent to, received from or awaited; the root of a collective, by its index
    /// Of a message. Of a collective operation 0 where it blocks; else 1 and the request that it ends, or any: none.
    std::uint32_t tag = mpi::any;
    std::uint32_t which = 0; // a request, a list (waits, exchange), a kernel, or a communicator
    double m = 0.0;          // bytes of a message; m, n, k of a kernel
    double n = 0.0;          // bytes of a segment of a collective operation; 0: it has none
    double k = 0.0;          // chains, children of a k-nomial tree, or messages at once of a collective operation
    std::uint32_t line = 0;  // of the program's text
    double error = 0.0;      // of a measured operation, as its n and k (measured.hpp)
};

} // namespace lepaute::program
