#pragma once
// What a rank asks of the engine, and how a rank goes from one operation to the next without a coroutine.

#include <cstdint>
#include <vector>

namespace lepaute::mpi {

using Rank = std::uint32_t;

/// Awaited by a rank, or begun from its steps.
struct Operation {
    enum class Kind : std::uint8_t {
        none,
        send,
        receive,
        exchange,
        probe,
        await_message,
        learn_arrival,
        join,
        until,
        isend,
        irecv,
        wait
    };
    Kind kind = Kind::none;
    bool noncontiguous = false; // the message is a derived datatype with gaps
    bool synchronous = false;   // the send ends when the receive has begun, whatever the size
    bool two_calls = false;     // a receive by MPI_Irecv and MPI_Wait; an exchange by MPI_Isend, too
    Rank send_to = 0;
    Rank receive_from = 0;
    std::uint32_t send_tag = 0;
    std::uint32_t receive_tag = 0;
    std::uint32_t request = 0; // of isend and irecv
    double send_bytes = 0.0;
};

/// What a rank does from one operation to the next, as a function of a small state instead of a coroutine.
class Steps {
public:
    Steps() = default;
    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;
    virtual ~Steps() = default;
    /// Called first, and then whenever the operation that it began has ended. True: all is done; false: it has
    /// begun an operation that has not ended.
    virtual bool advance() = 0;
};

/// Where `count` ranks meet: the last one to come goes on at once, the others when it releases them. Meanwhile it
/// may set the clocks of all.
struct Meeting {
    std::uint32_t count = 0;
    std::vector<Rank> present;
};

} // namespace lepaute::mpi
