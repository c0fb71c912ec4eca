// Routes of a platform as SimGrid sees them, a line for each pair of hosts: source, destination, latency in seconds,
// links. With a second argument "speeds": host, flop/s.
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    simgrid::s4u::Engine engine(&argc, argv);
    SMPI_init(); // makes the settings of SMPI known
    engine.load_platform(argv[1]);
    const auto hosts = engine.get_all_hosts();
    if (argc > 2 && std::string(argv[2]) == "speeds") {
        for (const auto* host : hosts) {
            std::printf("%s\t%.17g\n", host->get_cname(), host->get_speed());
        }
        return 0;
    }
    for (const auto* from : hosts) {
        for (const auto* to : hosts) {
            std::vector<simgrid::s4u::Link*> links;
            double latency_s = 0.0;
            from->route_to(to, links, &latency_s);
            std::printf("%s\t%s\t%.17g", from->get_cname(), to->get_cname(), latency_s);
            for (const auto* link : links) {
                std::printf("\t%s", link->get_cname());
            }
            std::printf("\n");
        }
    }
    return 0;
}
