#pragma once
// A list of numbers that mostly has few of them: these stand in the list itself, so that whoever goes through it
// touches no other memory.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lepaute::net {

/// Up to `Few` numbers in place, more of them on the heap.
template <std::size_t Few>
class ShortList {
public:
    [[nodiscard]] std::span<const std::uint32_t> items() const noexcept {
        return {count_ > Few ? many_->data() : few_.data(), count_};
    }
    void push_back(std::uint32_t number) {
        if (count_ < Few) {
            few_[count_] = number;
        } else {
            if (!many_) {
                many_ = std::make_unique<std::vector<std::uint32_t>>();
            }
            if (count_ == Few) {
                many_->assign(few_.begin(), few_.end());
            }
            many_->push_back(number);
        }
        ++count_;
    }
    /// Takes away a number that is in the list; the last one takes its place.
    void forget(std::uint32_t number) noexcept {
        std::uint32_t* const first = count_ > Few ? many_->data() : few_.data();
        --count_;
        *std::find(first, first + count_, number) = first[count_];
        if (count_ >= Few) {
            many_->pop_back();
            if (count_ == Few) {
                std::copy_n(many_->begin(), Few, few_.begin());
            }
        }
    }
    [[nodiscard]] std::size_t heap_bytes() const noexcept {
        return many_ ? sizeof(std::vector<std::uint32_t>) + many_->capacity() * sizeof(std::uint32_t) : 0;
    }

private:
    std::uint32_t count_ = 0;
    std::array<std::uint32_t, Few> few_{};
    std::unique_ptr<std::vector<std::uint32_t>> many_;
};

} // namespace lepaute::net
