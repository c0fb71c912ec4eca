// HPL's time against its critical path, and the pivot exchange against calculations by hand.

#include "apps/hpl/simulation.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

using namespace lepaute;
using hpl::Broadcast;
using hpl::Kernel;
using hpl::Parameters;

namespace {

// Seconds of a call per unit of what it does; all other kernels take no time.
constexpr double dgemm_mnk = 1e-10;
constexpr double dtrsm_mnk = 3e-10;
constexpr double dscal_n = 2e-9;
constexpr double idamax_n = 1.5e-9;
constexpr double dger_mn = 0.4e-9;

/// Term of a polynomial: mnk, mn, mk, nk, nn, m, n, k, 1.
void set(models::Machine& machine, Kernel kernel, std::size_t term, double coefficient) {
    models::KernelPiece piece;
    piece.mean[term] = coefficient;
    const std::string name(hpl::kernel_names.at(static_cast<std::size_t>(kernel)));
    machine.kernels.push_back({.name = name, .models = {models::KernelModel({piece})}});
}

/// Messages that take no time, and never wait for who receives them.
models::Machine free_messages(std::uint32_t cores) {
    models::Machine machine;
    machine.nodes = cores;
    set(machine, Kernel::dgemm, 0, dgemm_mnk);
    set(machine, Kernel::dgemm_nn, 0, dgemm_mnk);
    set(machine, Kernel::dtrsm, 0, dtrsm_mnk);
    set(machine, Kernel::dtrsm_left, 0, dtrsm_mnk);
    set(machine, Kernel::dscal, 6, dscal_n);
    set(machine, Kernel::idamax, 6, idamax_n);
    set(machine, Kernel::dger, 1, dger_mn);
    const models::Segment at_once{0.0, models::Protocol::eager, 0.0, 1e300, {}, {}, {}, 0.0};
    machine.network = tests::network_of({at_once}, 1e300);
    return machine;
}

/// Inside a node and between nodes, on links that are as wide.
void set_links(models::Network& network, const models::Segment& local, const models::Segment& remote) {
    network = tests::network_of({local}, local.bandwidth_Bps);
    network.remote.segments = network.remote_noncontiguous.segments = {remote};
    network.node_link_Bps = remote.bandwidth_Bps;
}

hpl::Result simulate(const Parameters& parameters, const models::Machine& machine, mpi::Trace trace = {}) {
    return hpl::simulate(parameters, machine, {}, tests::first(parameters.ranks()), 1, std::move(trace));
}

/// The rows of a trace that wait for the messages of pivot exchanges.
std::vector<mpi::TraceRow> pivot_waits(const Parameters& parameters, const models::Machine& machine) {
    mpi::Trace trace;
    trace.rank_wanted.assign(parameters.ranks(), 1);
    std::vector<mpi::TraceRow> rows = simulate(parameters, machine, std::move(trace)).trace.rows;
    std::erase_if(rows, [](const mpi::TraceRow& row) {
        return row.tag != 0x30000000 || row.code != static_cast<std::int16_t>(mpi::Call::wait);
    });
    return rows;
}

/// Whose message brings a panel to the process `distance` columns right of the root, as HPL's rings go; by distance.
std::uint32_t parent(Broadcast ring, std::uint32_t distance, std::uint32_t q) {
    if ((ring.modified && distance <= 2) || (ring.two_rings && distance == (q + 1) / 2)) {
        return 0;
    }
    return distance - 1;
}

/// The critical path of HPL without look-ahead where messages take no time, no row is swapped (every pivot is on the
/// diagonal) and the panel is one leaf of the right-looking variant; block rows and columns are dealt one by one.
class CriticalPath {
public:
    explicit CriticalPath(const Parameters& parameters)
        : h_(parameters), clock_s_(parameters.p, std::vector<double>(parameters.q, 0.0)) {}

    double seconds() {
        for (std::int64_t start = 0; start < h_.n; start += h_.nb) {
            factor(start);
            broadcast(start);
            spread_u(start);
            update(start);
        }
        double latest_s = 0.0;
        for (const std::vector<double>& row : clock_s_) {
            latest_s = std::max(latest_s, *std::max_element(row.begin(), row.end()));
        }
        return latest_s;
    }

private:
    /// Rows (of `procs` process rows) or columns from `start` to `end` that a process has, counted one by one.
    [[nodiscard]] std::int64_t mine(std::int64_t start, std::int64_t end, std::uint32_t proc,
                                    std::uint32_t procs) const {
        std::int64_t count = 0;
        for (std::int64_t i = start; i < end; ++i) {
            count += (i / h_.nb) % procs == proc ? 1 : 0;
        }
        return count;
    }
    [[nodiscard]] std::int64_t width(std::int64_t start) const { return std::min(h_.nb, h_.n - start); }

    void factor(std::int64_t start) {
        const auto column = static_cast<std::uint32_t>(start / h_.nb % h_.q);
        std::vector<std::int64_t> rows(h_.p);
        for (std::uint32_t row = 0; row < h_.p; ++row) {
            rows[row] = mine(start, h_.n, row, h_.p);
            clock_s_[row][column] += idamax_n * static_cast<double>(rows[row]);
        }
        for (std::int64_t done = 0; done < width(start); ++done) {
            double latest_s = 0.0; // the pivot is the largest of all: nobody goes on before all have told theirs
            for (std::uint32_t row = 0; row < h_.p; ++row) {
                latest_s = std::max(latest_s, clock_s_[row][column]);
            }
            --rows[static_cast<std::size_t>(start / h_.nb % h_.p)]; // the row of the pivot is done
            const std::int64_t right = width(start) - 1 - done;
            for (std::uint32_t row = 0; row < h_.p; ++row) {
                const auto below = static_cast<double>(rows[row]);
                clock_s_[row][column] = latest_s + dscal_n * below + (right > 0 ? idamax_n * below : 0.0) +
                                        (right > 1 ? dger_mn * below * static_cast<double>(right - 1) : 0.0);
            }
        }
    }
    void broadcast(std::int64_t start) {
        const auto root = static_cast<std::uint32_t>(start / h_.nb % h_.q);
        for (std::uint32_t row = 0; row < h_.p; ++row) {
            for (std::uint32_t distance = 1; distance < h_.q; ++distance) {
                const double from_s = clock_s_[row][(root + parent(h_.bcast, distance, h_.q)) % h_.q];
                double& mine_s = clock_s_[row][(root + distance) % h_.q];
                mine_s = std::max(mine_s, from_s);
            }
        }
    }
    /// The rows of U come from their owner: to all below the greatest power of two in rounds of twice the distance, to
    /// the others by way of the first of them.
    void spread_u(std::int64_t start) {
        const auto owner = static_cast<std::uint32_t>(start / h_.nb % h_.p);
        const std::uint32_t power = std::bit_floor(h_.p);
        for (std::uint32_t column = 0; column < h_.q; ++column) {
            if (mine(start + width(start), h_.n + 1, column, h_.q) == 0) {
                continue;
            }
            const auto hand_on = [&](std::uint32_t from, std::uint32_t to) {
                double& to_s = clock_s_[(owner + to) % h_.p][column];
                to_s = std::max(to_s, clock_s_[(owner + from) % h_.p][column]);
            };
            if (power < h_.p) {
                hand_on(0, power);
            }
            for (std::uint32_t bit = 1; bit < power; bit <<= 1U) {
                for (std::uint32_t d = bit; d < 2 * bit; ++d) {
                    hand_on(d - bit, d);
                }
            }
            const std::uint32_t beyond = h_.p - power;
            for (std::uint32_t bit = std::bit_ceil(std::max(1U, beyond)) / 2; bit > 0; bit /= 2) {
                for (std::uint32_t d = bit; d < beyond; d += 2 * bit) {
                    hand_on(power + d - bit, power + d);
                }
            }
        }
    }
    void update(std::int64_t start) {
        const std::int64_t after = start + width(start);
        for (std::uint32_t row = 0; row < h_.p; ++row) {
            for (std::uint32_t column = 0; column < h_.q; ++column) {
                const auto columns =
                    static_cast<double>(mine(after, h_.n + 1, column, h_.q)); // and the right-hand side
                const auto rows = static_cast<double>(mine(after, h_.n, row, h_.p));
                const auto jb = static_cast<double>(width(start));
                clock_s_[row][column] += dtrsm_mnk * columns * jb * jb + dgemm_mnk * rows * columns * jb;
            }
        }
    }

    Parameters h_;
    std::vector<std::vector<double>> clock_s_; // by process row and column
};

Parameters one_leaf(std::int64_t n, std::int64_t nb, std::uint32_t p, std::uint32_t q) {
    Parameters parameters{.n = n, .nb = nb, .p = p, .q = q, .depth = 0, .bcast = {}};
    parameters.pfact = parameters.rfact = hpl::Factorisation::right;
    parameters.nbmin = static_cast<std::uint32_t>(nb);
    parameters.pivot_rows.resize(static_cast<std::size_t>(n));
    std::iota(parameters.pivot_rows.begin(), parameters.pivot_rows.end(), 0);
    return parameters;
}

void expect_critical_path(const Parameters& parameters) {
    const double time_s = simulate(parameters, free_messages(static_cast<std::uint32_t>(parameters.ranks()))).time_s;
    EXPECT_NEAR(time_s / CriticalPath(parameters).seconds(), 1.0, 1e-12) << parameters.p << "x" << parameters.q;
}

} // namespace

TEST(HplPath, WithFreeMessagesTheTimeIsTheCriticalPathOfTheKernels) {
    constexpr auto grids = std::to_array<std::array<std::uint32_t, 2>>(
        {{1, 1}, {1, 4}, {4, 1}, {2, 2}, {2, 3}, {3, 2}, {4, 4}, {3, 5}, {5, 3}, {7, 2}, {8, 4}, {11, 1}});
    for (const auto& [p, q] : grids) {
        for (const std::int64_t n : {200, 301}) { // a multiple of the block size, and not
            expect_critical_path(one_leaf(n, 20, p, q));
        }
    }
}

TEST(HplPath, EveryRingHasItsCriticalPath) {
    for (const Broadcast ring : {Broadcast{}, Broadcast{.modified = true}, Broadcast{.two_rings = true},
                                 Broadcast{.modified = true, .two_rings = true}}) {
        for (const std::uint32_t q : {2U, 3U, 4U, 5U, 8U}) {
            for (const hpl::Order order : {hpl::Order::row, hpl::Order::column}) {
                Parameters parameters = one_leaf(330, 10, 3, q);
                parameters.bcast = ring;
                parameters.pmap = order;
                expect_critical_path(parameters);
            }
        }
    }
}

// Look-ahead, which starts panels earlier, gains; no order of the same work is faster than all of it spread evenly.
TEST(HplPath, LookAheadLiesBetweenThePathAndEvenWork) {
    for (const std::uint32_t q : {2U, 3U, 4U}) {
        Parameters parameters = one_leaf(600, 20, 2, q);
        const double path_s = CriticalPath(parameters).seconds();
        for (const std::uint32_t depth : {1U, 2U}) {
            parameters.depth = depth;
            const hpl::Result result = simulate(parameters, free_messages(2 * q));
            double work_s = 0.0;
            for (const models::KernelUse& use : result.kernels) {
                work_s += use.time_s;
            }
            EXPECT_LT(result.time_s, path_s);
            EXPECT_GT(result.time_s, work_s / (2 * q));
        }
    }
}

// One column on four process rows, two a node: a pivot exchange of two rounds. In the first the partners share a node.
// In the second two messages leave each node and two reach it: the second of them waits for the first.
TEST(HplPath, PivotExchangesShareTheLinksOfTheirNodes) {
    models::Machine machine = free_messages(2);
    machine.kernels = {};
    machine.cores_per_node = 2;
    const double latency_s = 1e-3;
    const double link_Bps = 1000.0;
    const models::Segment local{0.0, models::Protocol::eager, 1e-4, 1e6, {}, {}, {}, 0.0};
    const models::Segment remote{0.0, models::Protocol::eager, latency_s, link_Bps, {}, {}, {}, 0.0};
    set_links(machine.network, local, remote);
    const double one_row = 8.0 * (1 + 4);  // a row of the panel, its maximum and where it is
    const double two_rows = 8.0 * (2 + 4); // and the current row
    const std::vector<mpi::TraceRow> waits = pivot_waits(one_leaf(1, 1, 4, 1), machine);
    for (const mpi::TraceRow& row : waits) {
        const bool first_round = (row.peer ^ static_cast<std::int32_t>(row.rank)) == 1;
        const auto sender = static_cast<std::uint32_t>(row.peer);
        const double bytes = sender < (first_round ? 1U : 2U) ? two_rows : one_row;
        EXPECT_EQ(row.size_bytes, bytes);
        // Rank 1 alone has received two rows in the first round, so that it begins the second a little later.
        const double apart_s = sender < 2 ? (two_rows - one_row) / 1e6 : 0.0;
        const double sent_s = first_round ? 0.0 : 1e-4 + (sender == 1 ? two_rows : one_row) / 1e6;
        const double end_s = row.start_s + row.duration_s;
        if (first_round) {
            EXPECT_NEAR(row.contention_s, 0.0, 1e-12);
            EXPECT_NEAR(end_s, 1e-4 + bytes / 1e6, 1e-12);
        } else {
            const double waits_s = sender % 2 == 1 ? bytes / link_Bps - apart_s : 0.0;
            EXPECT_NEAR(row.contention_s, waits_s, 1e-12);
            EXPECT_NEAR(end_s, sent_s + latency_s + waits_s + bytes / link_Bps, 1e-12);
        }
    }
    EXPECT_EQ(waits.size(), 8U);
}

// A single panel goes round a ring of 16 ranks, 6 a node: 13 hops inside a node, 2 between nodes, one after the other.
// A probe sees the header of a rendezvous after a latency, and only then the receive is posted, from which the transfer
// takes another. The right-hand side moves from column 1 to column 0 meanwhile.
TEST(HplPath, ARingOfLocalAndRemoteHopsIsTheSumOfThem) {
    models::Machine machine = free_messages(18);
    machine.kernels = {};
    machine.nodes = 3;
    machine.cores_per_node = 6;
    const models::Segment local{0.0, models::Protocol::rendezvous, 1e-6, 1e10, {}, {}, {}, 0.0};
    const models::Segment remote{0.0, models::Protocol::rendezvous, 1e-5, 1e9, {}, {}, {}, 0.0};
    set_links(machine.network, local, remote);
    Parameters parameters = one_leaf(64, 64, 1, 16);
    parameters.bcast = {};
    const hpl::Result result = simulate(parameters, machine);
    EXPECT_EQ(result.messages, 15U + 1U);
    const double panel_bytes = (result.bytes - 8.0 * 64) / 15.0; // all but the right-hand side
    const auto takes_s = [&](const models::Segment& hop) {
        return 2.0 * hop.latency_s + panel_bytes / hop.bandwidth_Bps;
    };
    EXPECT_NEAR(result.time_s, 13 * takes_s(local) + 2 * takes_s(remote), 1e-12);
}

// Where the pairs of the pivot exchange and the rows of the broadcast cross the same links, a panel takes its part of
// them if it is on its way when the exchange begins: with two of them at most, a message takes up to three times as
// long. A single pair with nothing else on its way feels nothing.
TEST(HplPath, PivotExchangesFeelThePanelsOnTheirWay) {
    const double link_Bps = 1e8;
    const models::Segment segment{0.0, models::Protocol::eager, 1e-6, link_Bps, {}, {}, {}, 0.0};
    for (const std::uint32_t q : {1U, 3U}) {
        models::Machine machine = free_messages(3);
        machine.cores_per_node = q == 1 ? 1 : 2; // ranks 0 and 1; or rows 0 1 2 and 3 4 5, on nodes 0 0 1 and 1 2 2
        machine.network = tests::network_of({segment}, link_Bps);
        Parameters parameters = one_leaf(240, 20, 2, q);
        parameters.depth = 1;
        int felt = 0;
        for (const mpi::TraceRow& row : pivot_waits(parameters, machine)) {
            const double others = row.contention_s / (row.size_bytes / link_Bps);
            EXPECT_LE(others, 2.0 + 1e-6);
            felt += others > 1e-9 ? 1 : 0;
        }
        EXPECT_EQ(felt > 0, q > 1) << felt;
    }
}

TEST(HplPath, PivotsOfTheFirstRowComeFromItAlone) {
    Parameters parameters{.n = 400, .nb = 20, .p = 4, .q = 1};
    parameters.pivots = hpl::Pivots::first_row;
    const hpl::Result first = simulate(parameters, free_messages(4));
    parameters.pivots = hpl::Pivots::random;
    const hpl::Result random = simulate(parameters, free_messages(4));
    const auto swapped = [](const hpl::Result& result, std::size_t rank) {
        return result.rank_sent[rank][static_cast<std::size_t>(hpl::Phase::swap)];
    };
    // Four processes, five panels owned by each; distances are from the owner. U goes out in 3 messages. Process 0
    // sends its rows in one message at distance 1; at 2 and 3 it shares them in the first round, and both pass them on.
    // In the last round of the owners the first row with rows left is the owner.
    std::uint64_t messages = 0;
    std::uint64_t messages_random = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) {
        messages += swapped(first, rank).messages;
        messages_random += swapped(random, rank).messages;
    }
    EXPECT_EQ(messages, 20U * 3U + 4U * (1U + 3U + 3U));
    EXPECT_GT(messages_random, messages);
}
