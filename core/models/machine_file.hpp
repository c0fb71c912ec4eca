#pragma once
// A machine as text, for programs of ours that run apart from the engine (simblas, inside SMPI). It says what
// models::Machine holds, but for the topology; numbers come back bit for bit.

#include "models/machine.hpp"

#include <string>
#include <string_view>

namespace lepaute::models {

[[nodiscard]] std::string machine_text(const Machine& machine);

/// The machine that machine_text() wrote. Throws std::invalid_argument for any other text.
[[nodiscard]] Machine machine_of_text(std::string_view text);

} // namespace lepaute::models
