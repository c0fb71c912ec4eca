#include "apps/hpl/shared_link.hpp"

#include <gtest/gtest.h>

namespace lepaute::hpl {
namespace {

using Messages = std::vector<SharedLink::Message>;

Messages shared(Messages messages, double per_flow = 1.0, double others = 0.0) {
    SharedLink link;
    link.share(messages, per_flow, others);
    return messages;
}

TEST(SharedLink, OneMessageIsAsFastAsAlone) { EXPECT_EQ(shared({{5.0, 2.0}})[0].delay_s, 0.0); }

TEST(SharedLink, MessagesThatSetOutTogetherEndTogether) {
    for (const SharedLink::Message& message : shared({{1.0, 2.0}, {1.0, 2.0}, {1.0, 2.0}})) {
        EXPECT_DOUBLE_EQ(message.delay_s, 4.0);
    }
}

TEST(SharedLink, MessagesThatDoNotMeetDoNotDelayEachOther) {
    for (const SharedLink::Message& message : shared({{3.0, 1.0}, {1.0, 1.0}, {5.0, 1.0}})) {
        EXPECT_DOUBLE_EQ(message.delay_s, 0.0);
    }
}

TEST(SharedLink, MessagesThatMeetInPartAreDelayedInPart) {
    // Alone from 0 to 1, at half the speed until 3: the first is done. The second has had 1 of 2, and ends at 4.
    const Messages found = shared({{0.0, 2.0}, {1.0, 2.0}});
    EXPECT_DOUBLE_EQ(found[0].delay_s, 1.0);
    EXPECT_DOUBLE_EQ(found[1].delay_s, 1.0);
}

TEST(SharedLink, AShortMessageLeavesTheRestToALongOne) {
    const Messages found = shared({{0.0, 10.0}, {0.0, 1.0}});
    EXPECT_DOUBLE_EQ(found[0].delay_s, 1.0);
    EXPECT_DOUBLE_EQ(found[1].delay_s, 1.0);
}

TEST(SharedLink, NarrowMessagesShareAWideLinkWithoutDelay) {
    for (const SharedLink::Message& message : shared({{0.0, 2.0}, {0.0, 2.0}}, 0.5)) {
        EXPECT_DOUBLE_EQ(message.delay_s, 0.0);
    }
}

TEST(SharedLink, FlowsThatStayTakeTheirShare) { EXPECT_DOUBLE_EQ(shared({{0.0, 2.0}}, 1.0, 3.0)[0].delay_s, 6.0); }

} // namespace
} // namespace lepaute::hpl
