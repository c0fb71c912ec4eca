#pragma once
// What nonblocking calls leave behind until they are waited for. A rank numbers its requests itself, from 0; the number
// is free again when the request has been waited for.

#include "mpi/operation.hpp"
#include "mpi/trace.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace lepaute::mpi {

inline constexpr std::uint32_t any = 0xFFFFFFFFU; // source or tag of a receive
inline constexpr std::uint32_t no_request = 0xFFFFFFFFU;
/// Tags from here on are those of collective operations, which only receives of the same tag take.
inline constexpr std::uint32_t first_collective_tag = 1U << 31U;

/// How much the engine cares for the order of dates. A receive from any source takes the message that was posted first,
/// and MPI_Waitany the request that ended first: then messages inside nodes are events too.
enum class Matching : std::uint8_t { by_name, by_date };

struct Request {
    enum class State : std::uint8_t { none, open, done };
    State state = State::none;
    bool receives = false;
    bool waited_for = false;
    Rank peer = any; // of a receive from any source, the sender once it is known
    std::uint32_t tag = any;
    double posted_s = 0.0;
    double done_s = 0.0;
    double start_s = 0.0;    // of the transfer
    double lone_s = 0.0;     // what it takes alone
    double overhead_s = 0.0; // that its wait pays
    bool of_agent = false;   // whose overhead was paid with the rest, where the rank already waited
    double bytes = 0.0;
    std::uint32_t nth = 0; // of the messages of its sender
};

/// A receive, or a probe, that has no message yet.
struct Unmatched {
    Rank peer = any;
    std::uint32_t tag = any;
    std::uint32_t request = no_request;

    [[nodiscard]] bool takes(Rank from, std::uint32_t of_tag) const noexcept {
        return (peer == any || peer == from) && (tag == of_tag || (tag == any && of_tag < first_collective_tag));
    }
};

struct RankRequests {
    std::vector<Request> of;           // by number
    std::vector<Unmatched> unmatched;  // in order of posting
    std::uint32_t sent = 0;            // messages
    std::vector<std::uint32_t> waited; // by the wait that the rank is in
    std::uint32_t left = 0;            // of them, not done
    bool for_any = false;
    Call call = Call::wait;
    Request probed; // the message that the last MPI_Probe has found: sender, tag, bytes, nth

    [[nodiscard]] Request& at(std::uint32_t number) {
        if (number >= of.size()) {
            of.resize(number + 1);
        }
        return of[number];
    }
};

} // namespace lepaute::mpi
