#include "mpi/engine.hpp"

#include <algorithm>

// What a message takes that is not simulated as a flow.

namespace lepaute::mpi {

Engine::TransferTimes Engine::transfer_times(const models::Segment& segment, double bytes, Rank from, Rank to) const {
    const double link_Bps = network_.node_link_Bps;
    const bool scaled = segment.bandwidth_Bps > link_Bps || network_.flow_factor == models::FlowFactor::scale;
    const double alone_s = bytes / segment.bandwidth_Bps;
    const double on_link_s = scaled ? alone_s : bytes / link_Bps;
    const double narrowest_Bps =
        same_node(from, to) ? link_Bps : topology_.narrowest(ranks_[from].node, ranks_[to].node, link_Bps);
    if (narrowest_Bps >= link_Bps) {
        return {alone_s, on_link_s};
    }
    const double narrow_s = on_link_s * (link_Bps / narrowest_Bps);
    return {std::max(alone_s, narrow_s), narrow_s};
}

} // namespace lepaute::mpi
