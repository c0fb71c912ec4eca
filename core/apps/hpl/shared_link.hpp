#pragma once
// Messages that set out at given dates and share one link evenly.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace lepaute::hpl {

class SharedLink {
public:
    struct Message {
        double start_s = 0.0;
        double alone_s = 0.0; // how long it takes when it has the link for itself
        double delay_s = 0.0; // found by share(): by how much it ends later than alone
    };

    /// per_flow: what each flow on the link adds to the time of a message, relative to its time alone; a message is
    /// never faster than alone. others: flows that stay on the link meanwhile.
    void share(std::vector<Message>& messages, double per_flow, double others) {
        order_.resize(messages.size());
        for (std::uint32_t i = 0; i < order_.size(); ++i) {
            order_[i] = i;
        }
        std::ranges::sort(order_, {}, [&](std::uint32_t i) { return std::pair{messages[i].start_s, i}; });
        active_.clear();
        double date_s = 0.0;
        double served_s = 0.0; // to each message on the link so far, in seconds of its time alone
        std::size_t next = 0;
        while (next < order_.size() || !active_.empty()) {
            const double rate = std::min(1.0, 1.0 / (per_flow * (static_cast<double>(active_.size()) + others)));
            const bool arrives = next < order_.size() &&
                                 (active_.empty() ||
                                  messages[order_[next]].start_s <= date_s + (active_.front().first - served_s) / rate);
            if (arrives) {
                const double start_s = messages[order_[next]].start_s;
                served_s += active_.empty() ? 0.0 : (start_s - date_s) * rate;
                date_s = start_s;
                active_.emplace_back(served_s + messages[order_[next]].alone_s, order_[next]);
                std::ranges::push_heap(active_, std::greater<>{});
                ++next;
            } else {
                date_s += (active_.front().first - served_s) / rate;
                served_s = active_.front().first;
                Message& done = messages[active_.front().second];
                done.delay_s = std::max(0.0, date_s - done.start_s - done.alone_s);
                std::ranges::pop_heap(active_, std::greater<>{});
                active_.pop_back();
            }
        }
    }

private:
    std::vector<std::uint32_t> order_;
    std::vector<std::pair<double, std::uint32_t>> active_; // (served_s at its end, message), the first to end in front
};

} // namespace lepaute::hpl
