#pragma once
// Links by number.

#include <cstdint>

namespace lepaute::net {

using LinkId = std::uint32_t;

} // namespace lepaute::net
