#pragma once
// Memory that will be touched soon is asked for while there is something else to do. At tens of thousands of ranks the
// state of none is in a cache: an event takes as long as the loads that wait for each other.

#include <cstddef>

namespace lepaute::net {

/// A wish, without effect on anything but time; no harm where nothing is at that address.
inline void fetch(const void* memory, std::size_t bytes) noexcept {
    constexpr std::size_t line_bytes = 64;
    const auto* const begin = static_cast<const std::byte*>(memory);
    for (std::size_t at = 0; at < bytes; at += line_bytes) {
        __builtin_prefetch(begin + at, 1);
    }
}

} // namespace lepaute::net
