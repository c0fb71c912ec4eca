#include "factors.hpp"

#include "latency_factor.hpp"
#include "state.hpp"

#include <algorithm>
#include <smpi/smpi.h>
#if __has_include(<simgrid/kernel/resource/NetworkModelIntf.hpp>) // gone since SimGrid 4.0
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#define LEPAUTE_FACTORS_BY_MODEL
#endif

namespace lepaute::simblas {

namespace {

namespace s4u = simgrid::s4u;
const models::Segment& segment_of(double size, bool inside) {
    const models::Network& network = state().machine.network;
    return (inside ? network.loopback : network.remote).at(size);
}

/// SimGrid bounds a flow by this factor times the bandwidth of its links, and scales its share alike.
double bandwidth_factor(double size, bool inside) {
    const models::Network& network = state().machine.network;
    return segment_of(size, inside).bandwidth_Bps / (inside ? network.loopback_Bps : network.node_link_Bps);
}

} // namespace

void use_own_factors() {
    const auto latency = [](double size, const s4u::Host* from, const s4u::Host* to, const Links& links, const auto&) {
        return latency_factor(segment_of(size - envelope_bytes, from == to), links);
    };
    const auto bandwidth = [](double size, const s4u::Host* from, const s4u::Host* to, const Links&, const auto&) {
        return bandwidth_factor(size - envelope_bytes, from == to);
    };
    const s4u::NetZone* zone = s4u::Engine::get_instance()->get_netzone_root();
#ifdef LEPAUTE_FACTORS_BY_MODEL
    zone->get_network_model()->set_lat_factor_cb(latency);
    zone->get_network_model()->set_bw_factor_cb(bandwidth);
#else
    zone->set_latency_factor_cb(latency);
    zone->set_bandwidth_factor_cb(bandwidth);
#endif
    const auto charge = [](SmpiOperation operation, auto overhead) {
        smpi_register_op_cost_callback(operation, [=](std::size_t size, const s4u::Host* from, const s4u::Host* to) {
            return (segment_of(static_cast<double>(size), from == to).*overhead).of(static_cast<double>(size));
        });
    };
    charge(SmpiOperation::SEND, &models::Segment::send);
    charge(SmpiOperation::ISEND, &models::Segment::isend);
    charge(SmpiOperation::RECV, &models::Segment::receive);
}

} // namespace lepaute::simblas
