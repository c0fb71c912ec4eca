// What short flows between two nodes, which are not followed themselves, take from those that are.

#include "net/flows.hpp"

#include <algorithm>

namespace lepaute::net {

void Flows::take(std::uint32_t source, std::uint32_t destination, double seconds) {
    const std::span<const LinkId> way = way_between(source, destination);
    const auto lost_bytes = [&](double rate_Bps, std::span<const LinkId> links) {
        double slower_Bps = rate_Bps;
        for (const LinkId which : links) {
            if (std::ranges::find(way, which) != way.end()) {
                slower_Bps = std::min(slower_Bps, links_[which].capacity_Bps / (links_[which].flows + 1));
            }
        }
        return (rate_Bps - slower_Bps) * seconds;
    };
    for (const LinkId which : way) {
        const auto comes_first = [&](std::span<const LinkId> links) {
            return *std::ranges::find_first_of(way, links) == which; // of the links that they share
        };
        if (const std::uint32_t lone_source = links_[which].lone_source; lone_source != nobody) {
            if (Lone& lone = lones_[lone_source]; comes_first(lone.end_links)) {
                lone.work_bytes += lost_bytes(lone.rate_Bps, lone.end_links);
                queue_.set(lone_source, lone.start_s + lone.work_bytes / lone.rate_Bps);
            }
        }
        for (const std::uint32_t id : links_[which].bundles.items()) {
            if (Bundle& bundle = bundles_[id]; comes_first(bundle.route())) {
                bundle.served_bytes -= lost_bytes(bundle.rate_Bps, bundle.route());
                bundle.stale = true;
                mark(bundle.source);
            }
        }
    }
}

} // namespace lepaute::net
