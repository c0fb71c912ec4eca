#include "net/flows.hpp"

#include <gtest/gtest.h>

using namespace lepaute::net;

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
        EXPECT_DOUBLE_EQ(flows.rate_of(0, 3), 0.5);
        EXPECT_DOUBLE_EQ(flows.rate_of(1, 3), 0.5);
        EXPECT_DOUBLE_EQ(flows.rate_of(0, 2), sharing == Sharing::fair ? 2.0 : 3.5);
    }
}
