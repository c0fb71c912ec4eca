#include "net/flows.hpp"

#include <algorithm>

namespace lepaute::net {

void Flows::start(double date_s, std::uint32_t tag, double work_bytes, const Demand& demand) {
    advance(date_s);
    demands_.push_back(demand);
    left_bytes_.push_back(work_bytes);
    tags_.push_back(tag);
    share();
}

std::optional<Flows::End> Flows::next_end() const noexcept {
    if (demands_.empty()) {
        return std::nullopt;
    }
    return End{next_date_s_, tags_[next_]};
}

void Flows::finish_next() {
    advance(next_date_s_);
    const auto index = static_cast<std::ptrdiff_t>(next_);
    demands_.erase(demands_.begin() + index);
    left_bytes_.erase(left_bytes_.begin() + index);
    tags_.erase(tags_.begin() + index);
    share();
}

void Flows::advance(double date_s) noexcept {
    const double elapsed_s = date_s - now_s_;
    for (std::size_t flow = 0; flow < demands_.size(); ++flow) {
        left_bytes_[flow] = std::max(0.0, left_bytes_[flow] - rate_Bps_[flow] * elapsed_s);
    }
    now_s_ = date_s;
}

void Flows::share() {
    rate_Bps_ = max_min_rates(capacity_Bps_, demands_);
    for (std::size_t flow = 0; flow < demands_.size(); ++flow) {
        const double date_s = now_s_ + left_bytes_[flow] / rate_Bps_[flow];
        if (flow == 0 || date_s < next_date_s_) { // the oldest of equal dates: deterministic
            next_ = flow;
            next_date_s_ = date_s;
        }
    }
}

} // namespace lepaute::net
