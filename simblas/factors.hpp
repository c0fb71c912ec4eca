#pragma once

namespace lepaute::simblas {

/// Messages take the latency, bandwidth and overheads of the platform's segments, those inside a node from the loopback
/// segments: what SMPI's tables, one for all links, cannot say. Called when the platform is there.
void use_own_factors();

} // namespace lepaute::simblas
