#pragma once
// What ranks share about a panel, made when the first of them asks for it, and kept for the last panels.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lepaute::hpl {

/// A place for each of the last panels. A panel that has gone and is asked for again, by a rank that lags behind, gets
/// its place back, in a window twice as long: on wide grids, ranks are hundreds of steps apart. `Value` has the number
/// of its panel as `step`, -1 where it has none.
template <class Value>
class PanelWindow {
public:
    static constexpr std::size_t least = 64;
    static constexpr std::size_t most = 1024; // memory is bounded; whoever lags further makes it again

    /// The place of panel `step`: the caller fills it where its `step` is another. Valid until the next call.
    [[nodiscard]] Value& at(std::int64_t step) {
        if (slot(step).step > step) [[unlikely]] {
            make_room(step);
        }
        return slot(step);
    }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }

private:
    [[nodiscard]] Value& slot(std::int64_t step) noexcept {
        return slots_[static_cast<std::size_t>(step) & (slots_.size() - 1)]; // their number is a power of two
    }
    void make_room(std::int64_t step) {
        while (slot(step).step > step && slots_.size() < most) {
            grow();
        }
    }
    void grow() {
        std::vector<Value> before = std::exchange(slots_, std::vector<Value>(2 * slots_.size()));
        for (Value& value : before) {
            if (value.step >= 0) {
                slot(value.step) = std::move(value);
            }
        }
    }

    std::vector<Value> slots_ = std::vector<Value>(least);
};

} // namespace lepaute::hpl
