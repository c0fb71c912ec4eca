#pragma once

#include "state.hpp"

#include <string>

namespace lepaute::simblas {

/// What the file says; throws std::invalid_argument for a file that the launcher did not write.
void read_request(const std::string& path, Request& request, models::Machine& machine);

} // namespace lepaute::simblas
