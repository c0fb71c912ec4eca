#include "apps/program/measured.hpp"

#include "rng/elementary.hpp"
#include "rng/philox.hpp"

#include <algorithm>

namespace lepaute::program {

namespace {

constexpr std::uint32_t call_stream = 0x4D434C53U;
constexpr std::uint32_t error_stream = 0x4D434552U;

/// exp(x), of mean 1 where x is normal with mean 0 and this standard deviation.
double factor(double standard_normal, double sd) { return rng::exponential(sd * (standard_normal - sd / 2)); }

/// 32 bits of a text: FNV-1a.
std::uint32_t number_of(std::string_view text) {
    std::uint32_t value = 2166136261U;
    for (const char letter : text) {
        value = (value ^ static_cast<unsigned char>(letter)) * 16777619U;
    }
    return value;
}

/// Members whose coming is waited for, and who wait: all, the root, or all but the root.
enum class Side : std::uint8_t { all, root, others };

bool is_of(Side side, bool is_root) { return side == Side::all || (side == Side::root) == is_root; }

} // namespace

double MeasuredCalls::seconds(const Op& op, std::size_t nth) const {
    double seconds_s = op.k;
    if (errors_) {
        const std::uint32_t line = number_of(lines_[op.line]);
        seconds_s *= factor(rng::normal({seeds_.day, line, error_stream, 0}), op.error);
    }
    return noise_ ? seconds_s * factor(rng::normal({seeds_.run, op.which, call_stream, nth}), op.n) : seconds_s;
}

mpi::Task MeasuredCalls::call(mpi::Member me, const Op& op) {
    const mpi::Rank rank = mpi::own_rank(me);
    const std::size_t nth = nth_[{op.which, me.index}]++;
    State& state = open_[{op.which, nth}];
    const bool down = op.code == Code::broadcast || op.code == Code::scatter;
    const bool up = op.code == Code::reduce || op.code == Code::gather;
    const Side awaited = down ? Side::root : up ? Side::others : Side::all;
    const Side waits = down ? Side::others : up ? Side::root : Side::all;
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t needed = awaited == Side::all ? size : awaited == Side::root ? 1 : size - 1;
    const bool is_root = me.index == op.peer;
    const double begun_s = engine_.clock(rank);
    if (is_of(awaited, is_root)) {
        state.met_s = std::max(state.met_s, begun_s);
        if (++state.joined == needed) {
            engine_.release(rank, state.waiting);
        }
    }
    if (is_of(waits, is_root)) {
        state.waiting.count = mpi::any; // who comes last has released the others
        if (state.joined < needed) {
            co_await engine_.join(rank, state.waiting);
        }
        engine_.spend(rank, mpi::Share::late, std::max(0.0, state.met_s - begun_s));
    }
    engine_.spend(rank, mpi::Share::transfer, seconds(op, nth));
    if (++state.passed == size) {
        open_.erase({op.which, nth});
    }
}

} // namespace lepaute::program
