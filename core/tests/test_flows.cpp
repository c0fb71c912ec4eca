#include "net/flows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

using namespace lepaute::net;

namespace {

/// A flow as it is asked for.
struct Asked {
    double date_s;
    double work_bytes;
    std::uint32_t source;
    std::uint32_t destination;
    double cap_Bps;
};

/// Links and flows at random, many of them equal in sizes, dates and caps.
struct Scene {
    std::uint32_t nodes = 0;
    std::vector<double> capacity_Bps;
    std::vector<std::vector<LinkId>> routes; // by source * nodes + destination
    std::vector<Asked> asked;                // in order of date

    Scene(std::uint64_t seed, bool round_numbers) {
        std::mt19937_64 random(seed);
        const auto number = [&](double low, double high) {
            const double u = static_cast<double>(random() >> 11U) * 0x1p-53;
            const double value = low + (high - low) * u;
            return round_numbers ? std::max(1.0, std::floor(value)) : value;
        };
        nodes = 2 + static_cast<std::uint32_t>(random() % 5);
        const std::size_t links = 2 + random() % 10;
        for (std::size_t link = 0; link < links; ++link) {
            capacity_Bps.push_back(number(1.0, 10.0));
        }
        for (std::uint32_t pair = 0; pair < nodes * nodes; ++pair) {
            std::vector<LinkId> all(links);
            std::iota(all.begin(), all.end(), 0U);
            std::shuffle(all.begin(), all.end(), random);
            all.resize(1 + random() % std::min<std::size_t>(links, 4));
            routes.push_back(all);
        }
        const std::size_t flows = 5 + random() % 40;
        for (std::size_t flow = 0; flow < flows; ++flow) {
            const double date_s = asked.empty() ? 0.0 : asked.back().date_s + (random() % 3 == 0 ? 0.0 : number(0, 3));
            const double cap_Bps = random() % 2 == 0 ? 1e9 : number(1.0, 6.0);
            asked.push_back({date_s, number(1.0, 30.0), static_cast<std::uint32_t>(random() % nodes),
                             static_cast<std::uint32_t>(random() % nodes), cap_Bps});
        }
    }
    [[nodiscard]] const std::vector<LinkId>& route(const Asked& flow) const {
        return routes[flow.source * nodes + flow.destination];
    }
};

/// Rates of the flows, each on its own: an equal part of the most loaded link, or by filling all until something is
/// full (max-min fair).
std::vector<double> rates(const Scene& scene, const std::vector<std::size_t>& flowing, Sharing sharing) {
    std::vector<double> rate_Bps(flowing.size(), 0.0);
    std::vector<bool> held(flowing.size(), false);
    std::vector<double> left = scene.capacity_Bps;
    for (std::size_t rest = flowing.size(); rest > 0;) {
        std::vector<double> crossing(left.size(), 0.0);
        for (std::size_t i = 0; i < flowing.size(); ++i) {
            for (const LinkId link : scene.route(scene.asked[flowing[i]])) {
                crossing[link] += held[i] ? 0.0 : 1.0;
            }
        }
        const auto least = [&](std::size_t i) {
            const Asked& flow = scene.asked[flowing[i]];
            double share = flow.cap_Bps;
            for (const LinkId link : scene.route(flow)) {
                share = std::min(share, left[link] / crossing[link]);
            }
            return share;
        };
        double level = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < flowing.size(); ++i) {
            if (sharing == Sharing::fair) {
                rate_Bps[i] = least(i);
            } else if (!held[i]) {
                level = std::min(level, least(i));
            }
        }
        if (sharing == Sharing::fair) {
            break;
        }
        std::vector<std::size_t> full;
        for (std::size_t i = 0; i < flowing.size(); ++i) {
            if (!held[i] && least(i) <= level * (1.0 + 1e-12)) {
                full.push_back(i);
            }
        }
        for (const std::size_t i : full) {
            held[i] = true;
            rate_Bps[i] = level;
            --rest;
            for (const LinkId link : scene.route(scene.asked[flowing[i]])) {
                left[link] -= level;
            }
        }
    }
    return rate_Bps;
}

/// When each flow ends: all rates anew at every start and every end.
std::vector<double> ends_by_hand(const Scene& scene, Sharing sharing) {
    std::vector<double> end_s(scene.asked.size(), 0.0);
    std::vector<double> left_bytes(scene.asked.size(), 0.0);
    std::vector<std::size_t> flowing;
    double now_s = 0.0;
    for (std::size_t next = 0; next < scene.asked.size() || !flowing.empty();) {
        const std::vector<double> rate_Bps = rates(scene, flowing, sharing);
        const double start_s = next < scene.asked.size() ? scene.asked[next].date_s : 1e300;
        double first_end_s = 1e300;
        std::size_t first = 0;
        for (std::size_t i = 0; i < flowing.size(); ++i) {
            const double date_s = now_s + left_bytes[flowing[i]] / rate_Bps[i];
            if (date_s < first_end_s) {
                first_end_s = date_s;
                first = i;
            }
        }
        const double date_s = std::min(start_s, first_end_s);
        for (std::size_t i = 0; i < flowing.size(); ++i) {
            left_bytes[flowing[i]] -= rate_Bps[i] * (date_s - now_s);
        }
        now_s = date_s;
        if (first_end_s <= start_s) {
            end_s[flowing[first]] = now_s;
            flowing.erase(flowing.begin() + static_cast<std::ptrdiff_t>(first));
        } else {
            left_bytes[next] = scene.asked[next].work_bytes;
            flowing.push_back(next++);
        }
    }
    return end_s;
}

/// When each flow ends as Flows has it.
std::vector<double> ends(const Scene& scene, Sharing sharing) {
    Flows flows(scene.capacity_Bps, scene.nodes, sharing, [&](auto from, auto to, std::vector<LinkId>& links) {
        const std::vector<LinkId>& route = scene.routes[from * scene.nodes + to];
        links.insert(links.end(), route.begin(), route.end());
    });
    std::vector<double> end_s(scene.asked.size(), -1.0);
    double last_s = 0.0;
    const auto finish = [&] {
        const double date_s = flows.next_end_s();
        EXPECT_GE(date_s, last_s * (1.0 - 1e-14));
        last_s = date_s;
        double& end = end_s[flows.finish_next()];
        EXPECT_EQ(end, -1.0) << "a flow ended twice";
        end = date_s;
    };
    for (std::size_t i = 0; i < scene.asked.size(); ++i) {
        const Asked& flow = scene.asked[i];
        while (flows.next_end_s() <= flow.date_s) {
            finish();
        }
        flows.start(flow.date_s, static_cast<std::uint32_t>(i), flow.work_bytes, flow.source, flow.destination,
                    flow.cap_Bps);
    }
    while (flows.next_end_s() != Flows::never) {
        finish();
    }
    for (LinkId link = 0; link < scene.capacity_Bps.size(); ++link) {
        EXPECT_EQ(flows.on_link(link), 0U);
    }
    return end_s;
}

void compare_with_the_hand_calculation(Sharing sharing) {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        const Scene scene(seed, seed % 2 == 0);
        const std::vector<double> expected = ends_by_hand(scene, sharing);
        const std::vector<double> actual = ends(scene, sharing);
        for (std::size_t flow = 0; flow < expected.size(); ++flow) {
            ASSERT_NEAR(actual[flow], expected[flow], 1e-9 * (1.0 + expected[flow])) << seed << " flow " << flow;
        }
    }
}

} // namespace

// Two flows of 10 bytes on a link of 10 bytes/s, the second half a second later: alone 10 bytes/s, together 5 each.
// At 0.5 the first has 5 left; it ends at 1.5, when the second has 5 left and the link to itself: it ends at 2.
TEST(Flows, ShareALinkWhileTheyOverlap) {
    for (const Sharing sharing : {Sharing::fair, Sharing::exact}) {
        Flows flows({10.0}, 1, sharing, [](auto, auto, std::vector<LinkId>& links) { links.push_back(0); });
        flows.start(0.0, 1, 10.0, 0, 1, 1e9);
        flows.start(0.5, 2, 10.0, 0, 2, 1e9);
        EXPECT_DOUBLE_EQ(flows.next_end_s(), 1.5);
        EXPECT_EQ(flows.finish_next(), 1U);
        EXPECT_DOUBLE_EQ(flows.next_end_s(), 2.0);
        EXPECT_EQ(flows.finish_next(), 2U);
        EXPECT_EQ(flows.next_end_s(), Flows::never);
    }
}

// Source 0 sends to 2 and 3, source 1 to 3; links 0 and 1 carry 4 bytes/s, link 3 carries 1. Fair shares give the flow
// 0 -> 2 half of its link; exactly, it gets what 0 -> 3, held back by link 3, leaves over.
TEST(Flows, FairSharesAreNeverMoreThanExactOnes) {
    for (const Sharing sharing : {Sharing::fair, Sharing::exact}) {
        Flows flows({4.0, 4.0, 4.0, 1.0}, 2, sharing, [](auto from, auto to, std::vector<LinkId>& links) {
            links.insert(links.end(), {from, to});
        });
        flows.start(0.0, 1, 10.0, 0, 2, 1e9);
        flows.start(0.0, 2, 10.0, 0, 3, 1e9);
        flows.start(0.0, 3, 10.0, 1, 3, 1e9);
        EXPECT_DOUBLE_EQ(flows.next_end_s(), sharing == Sharing::fair ? 10.0 / 2.0 : 10.0 / 3.5);
        EXPECT_EQ(flows.finish_next(), 1U);
        EXPECT_DOUBLE_EQ(flows.next_end_s(), 10.0 / 0.5);
        EXPECT_EQ(flows.finish_next(), 2U);
        EXPECT_DOUBLE_EQ(flows.next_end_s(), 10.0 / 0.5);
    }
}

TEST(Flows, EndWhenAHandCalculationOfFairSharesSaysSo) { compare_with_the_hand_calculation(Sharing::fair); }

TEST(Flows, EndWhenAHandCalculationOfMaxMinFairnessSaysSo) { compare_with_the_hand_calculation(Sharing::exact); }

// Flows of one bundle end by size, not by start; those of equal size in the order in which they started.
TEST(Flows, OfOnePairEndBySizeAndThenInOrder) {
    Flows flows({8.0}, 1, Sharing::fair, [](auto, auto, std::vector<LinkId>& links) { links.push_back(0); });
    for (std::uint32_t tag = 0; tag < 4; ++tag) {
        flows.start(0.0, tag, tag == 2 ? 1.0 : 5.0, 0, 1, 1e9);
    }
    EXPECT_EQ(flows.finish_next(), 2U);
    EXPECT_EQ(flows.finish_next(), 0U);
    EXPECT_EQ(flows.finish_next(), 1U);
    EXPECT_EQ(flows.finish_next(), 3U);
}

// A flow that is none of these takes its share of a link for 2 s: of one alone on two links half, once, whatever it
// crosses; of two beside each other a third of the link together. A flow that another link holds back loses nothing.
TEST(Flows, LoseWhatAnotherTakes) {
    const auto switched = [](auto from, auto to, std::vector<LinkId>& links) { links.insert(links.end(), {from, to}); };
    for (const Sharing sharing : {Sharing::fair, Sharing::exact}) {
        Flows alone({12.0, 12.0, 12.0, 12.0}, 2, sharing, switched);
        alone.start(0.0, 1, 120.0, 0, 2, 1e9);
        alone.take(0, 2, 2.0);
        alone.settle();
        EXPECT_DOUBLE_EQ(alone.next_end_s(), 11.0);
        alone.take(1, 3, 2.0); // on other links
        alone.settle();
        EXPECT_DOUBLE_EQ(alone.next_end_s(), 11.0);
        Flows two({12.0, 12.0, 12.0, 1.0}, 2, sharing, switched);
        two.start(0.0, 1, 60.0, 0, 2, 6.0);
        two.start(0.0, 2, 20.0, 0, 3, 6.0);
        two.take(0, 2, 2.0);
        two.settle();
        EXPECT_DOUBLE_EQ(two.next_end_s(), 10.0 + 2.0 * (6.0 - 4.0) / 6.0);
        EXPECT_EQ(two.finish_next(), 1U);
        EXPECT_DOUBLE_EQ(two.next_end_s(), 20.0);
    }
}
