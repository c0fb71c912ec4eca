#include "apps/hpl/shared_link.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lepaute::hpl {
namespace {

struct Message {
    double start_s;
    double alone_s;
};

/// By how much each of `messages`, in the order of their starts, ends later than alone.
std::vector<double> delays(const std::vector<Message>& messages, double per_flow = 1.0, double others = 0.0) {
    SharedLink link;
    link.clear(per_flow, others);
    std::vector<double> delay_s(messages.size());
    const auto end_until = [&](double date_s) {
        while (!link.is_empty() && link.next_end_s() <= date_s) {
            const double end_s = link.next_end_s();
            const std::uint32_t done = link.end_next();
            delay_s[done] = end_s - messages[done].start_s - messages[done].alone_s;
        }
    };
    for (std::uint32_t i = 0; i < messages.size(); ++i) {
        end_until(messages[i].start_s);
        link.begin(messages[i].start_s, messages[i].alone_s, i);
    }
    end_until(1e9);
    return delay_s;
}

using Delays = std::vector<double>;

TEST(SharedLink, OneMessageIsAsFastAsAlone) { EXPECT_EQ(delays({{5.0, 2.0}}), Delays{0.0}); }

TEST(SharedLink, MessagesThatSetOutTogetherEndTogether) {
    EXPECT_EQ(delays({{1.0, 2.0}, {1.0, 2.0}, {1.0, 2.0}}), (Delays{4.0, 4.0, 4.0}));
}

TEST(SharedLink, MessagesThatDoNotMeetDoNotDelayEachOther) {
    EXPECT_EQ(delays({{1.0, 1.0}, {3.0, 1.0}, {5.0, 1.0}}), (Delays{0.0, 0.0, 0.0}));
}

TEST(SharedLink, MessagesThatMeetInPartAreDelayedInPart) {
    // Alone from 0 to 1, at half the speed until 3: the first is done. The second has had 1 of 2, and ends at 4.
    EXPECT_EQ(delays({{0.0, 2.0}, {1.0, 2.0}}), (Delays{1.0, 1.0}));
}

TEST(SharedLink, AShortMessageLeavesTheRestToALongOne) {
    EXPECT_EQ(delays({{0.0, 10.0}, {0.0, 1.0}}), (Delays{1.0, 1.0}));
}

TEST(SharedLink, NarrowMessagesShareAWideLinkWithoutDelay) {
    EXPECT_EQ(delays({{0.0, 2.0}, {0.0, 2.0}}, 0.5), (Delays{0.0, 0.0}));
}

TEST(SharedLink, FlowsThatStayTakeTheirShare) { EXPECT_EQ(delays({{0.0, 2.0}}, 1.0, 3.0), Delays{6.0}); }

} // namespace
} // namespace lepaute::hpl
