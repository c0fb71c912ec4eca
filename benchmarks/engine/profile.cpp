// One full run of HPL with nothing around it, for profilers. Arguments: a file with the text of a machine
// (Machine.text() of the core), n, nb, p, q. docs/speed.md says how it is compiled.

#include "apps/hpl/simulation.hpp"
#include "models/machine_file.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

int main(int count, char** arguments) {
    if (count != 6) {
        std::fputs("usage: profile MACHINE N NB P Q\n", stderr);
        return 2;
    }
    std::ifstream file(arguments[1]);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    lepaute::hpl::Parameters parameters;
    parameters.n = std::atoll(arguments[2]);
    parameters.nb = std::atoll(arguments[3]);
    parameters.p = static_cast<std::uint32_t>(std::atoi(arguments[4]));
    parameters.q = static_cast<std::uint32_t>(std::atoi(arguments[5]));
    std::vector<std::uint32_t> cores(parameters.ranks());
    std::iota(cores.begin(), cores.end(), 0U);
    const auto result = lepaute::hpl::simulate(parameters, lepaute::models::machine_of_text(text), {}, cores,
                                               lepaute::models::Seeds{1});
    std::printf("%.17g s, %llu messages\n", result.time_s, static_cast<unsigned long long>(result.messages));
}
