#pragma once
// Messages that set out at given dates and share one link evenly.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace lepaute::hpl {

/// Goes from event to event: whoever uses it begins and ends messages in the order of their dates.
class SharedLink {
public:
    /// An empty link. per_flow: what each flow on it adds to the time of a message, relative to its time alone; a
    /// message is never faster than alone. others: flows that stay on the link meanwhile.
    void clear(double per_flow, double others) noexcept {
        per_flow_ = per_flow;
        others_ = others;
        served_s_ = 0.0;
        date_s_ = 0.0;
        active_.clear();
    }

    /// A message sets out at `date_s` that takes `alone_s` when it has the link for itself.
    void begin(double date_s, double alone_s, std::uint32_t message) {
        served_s_ += active_.empty() ? 0.0 : (date_s - date_s_) * rate();
        date_s_ = date_s;
        active_.emplace_back(served_s_ + alone_s, message);
        std::ranges::push_heap(active_, std::greater<>{});
    }

    [[nodiscard]] bool is_empty() const noexcept { return active_.empty(); }

    /// When the next message is through, unless others set out before; infinity where there is none.
    [[nodiscard]] double next_end_s() const noexcept {
        return active_.empty() ? std::numeric_limits<double>::infinity()
                               : date_s_ + (active_.front().first - served_s_) / rate();
    }

    /// Takes that message off the link, and says which it is.
    std::uint32_t end_next() {
        date_s_ = next_end_s();
        served_s_ = active_.front().first;
        const std::uint32_t message = active_.front().second;
        std::ranges::pop_heap(active_, std::greater<>{});
        active_.pop_back();
        return message;
    }

private:
    /// Of what a message gets alone.
    [[nodiscard]] double rate() const noexcept {
        return std::min(1.0, 1.0 / (per_flow_ * (static_cast<double>(active_.size()) + others_)));
    }

    double per_flow_ = 1.0;
    double others_ = 0.0;
    double date_s_ = 0.0;
    double served_s_ = 0.0; // to each message on the link so far, in seconds of its time alone
    std::vector<std::pair<double, std::uint32_t>> active_; // (served_s at its end, message), the first to end in front
};

} // namespace lepaute::hpl
