#pragma once
// Flows in progress: who transfers how much, and which one ends next.

#include "net/max_min.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace lepaute::net {

/// Bytes in transfer over shared links; time only moves forward.
class Flows {
public:
    explicit Flows(std::vector<double> capacity_Bps) : capacity_Bps_(std::move(capacity_Bps)) {}

    struct End {
        double date_s;
        std::uint32_t tag;
    };

    /// A flow of `work_bytes` on the links of `demand` starts at `date_s`; `tag` comes back when it ends.
    void start(double date_s, std::uint32_t tag, double work_bytes, const Demand& demand);
    /// The next flow to end if nothing else starts; none when nothing flows.
    [[nodiscard]] std::optional<End> next_end() const noexcept;
    /// Ends the flow that next_end() names, at its date.
    void finish_next();
    [[nodiscard]] bool empty() const noexcept { return demands_.empty(); }

private:
    void advance(double date_s) noexcept;
    void share();

    std::vector<double> capacity_Bps_;
    std::vector<Demand> demands_;
    std::vector<double> left_bytes_;
    std::vector<double> rate_Bps_;
    std::vector<std::uint32_t> tags_;
    double now_s_ = 0.0;
    std::size_t next_ = 0; // index of the flow that ends first
    double next_date_s_ = 0.0;
};

} // namespace lepaute::net
