#pragma once
// Collective operations that take what single calls of them took on the machine itself: they move no messages. Who
// waits for whom is MPI's: all for all, all for the root, or the root for all; then each takes the time of a call.

#include "apps/program/op.hpp"
#include "models/machine.hpp"
#include "mpi/collectives_steps.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lepaute::program {

class MeasuredCalls {
public:
    /// lines: of the program's text.
    MeasuredCalls(const std::vector<std::string>& lines, mpi::Engine& engine, models::Seeds seeds,
                  const models::Layers& layers)
        : lines_(lines), engine_(engine), seeds_(seeds), noise_(layers.noise), errors_(layers.collectives) {}

    /// One member's side of `op`, of which `k` is the mean in seconds, `n` the standard deviation of its logarithm from
    /// call to call, and `error` that of the mean, which all calls of a line share.
    mpi::Task call(mpi::Member me, const Op& op);

private:
    struct State {
        std::uint32_t joined = 0;
        std::uint32_t passed = 0;
        double met_s = 0.0; // when the last has come for whom others wait
        mpi::Meeting waiting;
    };
    [[nodiscard]] double seconds(const Op& op, std::size_t nth) const;

    const std::vector<std::string>& lines_;
    mpi::Engine& engine_;
    models::Seeds seeds_;
    bool noise_;
    bool errors_;
    std::map<std::pair<std::uint32_t, std::size_t>, State> open_;        // by communicator, in the order of its calls
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> nth_; // by communicator and member: its calls
};

} // namespace lepaute::program
