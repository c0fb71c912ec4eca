#pragma once
// A program that was laid down: for each rank the operations that it goes through, once for all runs.

#include "apps/program/measured.hpp"
#include "apps/program/op.hpp"
#include "checks.hpp"
#include "models/machine.hpp"
#include "models/words.hpp"
#include "mpi/collectives.hpp"
#include "mpi/engine.hpp"
#include "mpi/run.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lepaute::program {

/// What one rank does: places in the list of operations.
struct RankCode {
    std::vector<std::uint32_t> ops;
    std::vector<std::array<std::uint32_t, 3>> parts; // first, count, times of each
};

/// Requests that a wait is for, or the neighbours of an exchange with the bytes that each is sent.
struct List {
    std::vector<std::uint32_t> numbers;
    std::vector<double> bytes;
};

/// What a request that a rank has waited for has brought: its number, and sender, tag, bytes of the message and which
/// of its sender's it is.
struct Came {
    std::uint32_t request = 0;
    std::uint32_t source = 0;
    std::uint32_t tag = 0;
    std::uint32_t nth = 0;
    double bytes = 0.0;
};

/// The next operation of a rank whose course depends on what came, with the list that it names; none at the end.
struct Next {
    std::optional<Op> op;
    List list;
    std::vector<std::vector<std::uint32_t>> communicators; // that are new, with the next numbers
};

struct Parameters {
    static constexpr std::uint32_t most_ranks = 1U << 24U;
    static constexpr std::uint32_t most_requests = 1U << 24U;

    std::vector<Op> ops;
    std::vector<List> lists;
    std::vector<std::vector<std::uint32_t>> communicators; // ranks of each; the first one has all
    std::vector<RankCode> rank_code;
    std::vector<std::string> kernels;
    std::vector<std::string> lines; // as messages name them
    std::uint32_t step_count = 1;   // the most that a rank begins
    bool by_date = false;           // whether a receive is from any source, or a wait for any request
    /// In the place of `rank_code`, ops and lists: asked for each operation, with what the one before has brought.
    std::function<Next(std::uint32_t, std::vector<Came>)> next;
    std::function<std::string(std::uint32_t)> line_of; // in the place of `lines`

    [[nodiscard]] std::size_t ranks() const noexcept { return rank_code.size(); }
    [[nodiscard]] std::size_t steps() const noexcept { return step_count; }

    /// That all numbers are within what they number. What ranks do together is checked by check_together().
    void check() const;
    /// members: how many the communicator of a collective operation has.
    void check_op(const Op& op, const List& list, std::size_t members) const;
    void check_communicator(const std::vector<std::uint32_t>& members) const;
    /// `call` at its line, as messages name it: allreduce (app.py:12).
    [[nodiscard]] std::string named(const Op& op) const;
    /// The same with all that the members of a communicator have to agree about.
    [[nodiscard]] std::string agreed(const Op& op) const;
    /// Throws std::invalid_argument, with ranks, calls and lines, where the members of a communicator do not call the
    /// same collective operations in the same order, with equal roots and algorithms.
    void check_together() const;
    template <class Visit>
    static void fields(Visit visit) {
        visit("ops", &Parameters::ops);
        visit("lists", &Parameters::lists);
        visit("communicators", &Parameters::communicators);
        visit("rank_code", &Parameters::rank_code);
        visit("kernels", &Parameters::kernels);
        visit("lines", &Parameters::lines);
        visit("step_count", &Parameters::step_count);
        visit("by_date", &Parameters::by_date);
    }
};

struct Result : mpi::RunResult {
    /// The names that kernel_set has.
    struct Names {
        std::vector<std::string> own;
        std::vector<std::string_view> views;
    };
    std::shared_ptr<const Names> names;
};

/// One run. The kernels of the program are those of `machine` with their names. Steps of a trace are the program's.
/// Throws std::invalid_argument for a program that is none, std::runtime_error on a deadlock, for a message that nobody
/// receives, or when `progress` is cancelled.
[[nodiscard]] Result simulate(const Parameters& parameters, const models::Machine& machine,
                              const models::Layers& layers, const std::vector<std::uint32_t>& core_of_rank,
                              models::Seeds seeds, mpi::Trace trace = {}, mpi::Progress* progress = nullptr);

/// Goes through the collective operations of a communicator that do not block, for one of its members: the engine's
/// ranks behind those of the program.
struct Agent {
    mpi::Rank of;
    std::uint32_t communicator;
    std::uint32_t index;
};

/// A rank in a communicator, and how many of its collective operations it has called.
struct Membership {
    std::uint32_t communicator = 0;
    std::uint32_t index = 0;
    std::size_t calls = 0;
};

struct Communicators {
    explicit Communicators(const Parameters& program);
    void add(const std::vector<std::uint32_t>& ranks);
    /// Throws std::invalid_argument where the rank is not in the communicator of the operation.
    [[nodiscard]] Membership& membership(mpi::Rank rank, const Op& op);
    /// Counts a call, and says how it differs from that of who called first; nothing where it does not.
    [[nodiscard]] std::string call(mpi::Rank rank, const Op& op);

    std::deque<mpi::Communicator> all;                              // which ranks hold on to while more come
    std::vector<std::vector<Membership>> memberships;               // of each rank
    std::vector<std::vector<std::pair<mpi::Rank, Op>>> first_calls; // of each communicator
    const Parameters& parameters;
};

/// The program of a rank.
class Program {
public:
    Program(const Parameters& parameters, const std::vector<Agent>& agents, mpi::Engine& engine,
            models::MachineDay& day, MeasuredCalls measured);
    [[nodiscard]] mpi::Task run(mpi::Rank rank); // or an agent
    /// Who waits for what, of a run that has ended in a deadlock.
    [[nodiscard]] std::string deadlock() const;
    /// Throws std::runtime_error for a message, or a receive, that has no other side.
    void check_all_received() const;

private:
    struct At { // what a rank is at
        const Op* op = nullptr;
        std::size_t part = 0; // of its code, and how much of that is done
        std::uint64_t done = 0;
        Next own; // asked for
        std::uint32_t step = 0;
        bool ended = false;
    };
    /// The next operation of a rank; null at the end.
    [[nodiscard]] const Op* advance(mpi::Rank rank);
    [[nodiscard]] const Op* asked(mpi::Rank rank);
    void check_asked(mpi::Rank rank, const Next& next);
    [[nodiscard]] const List& list_of(mpi::Rank rank, const Op& op) const {
        return parameters_.next ? at_[rank].own.list : parameters_.lists[op.which];
    }
    mpi::Task exchange(mpi::Rank rank, const Op& op);
    mpi::Task collective(mpi::Rank rank, const Op& op);
    void begin_collective(mpi::Rank rank, const Op& op);
    mpi::Task run_agent(mpi::Rank number);
    [[nodiscard]] std::string waiting(mpi::Rank rank) const;

    /// What an agent has to do, one after the other.
    struct Jobs {
        std::deque<std::pair<Op, double>> begun; // and when
        bool idle = false;
    };

    const Parameters& parameters_;
    mpi::Engine& engine_;
    models::MachineDay& day_;
    Communicators communicators_;
    const std::vector<Agent>& agents_;
    std::vector<Jobs> jobs_;                   // of each agent
    std::vector<mpi::Communicator> agents_of_; // by communicator; empty where none is needed
    MeasuredCalls measured_;
    std::vector<At> at_;
    std::vector<std::uint32_t> own_requests_; // of each rank: numbers from here on are those of exchanges
};

} // namespace lepaute::program
