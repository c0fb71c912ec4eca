// One run of HPL with nothing around it, for profilers. Arguments: a file with the text of a machine (Machine.text() of
// the core), n, nb, p, q, and how many steps to simulate, without the solve; all of them where it is left out.
// docs/evidence/speed.md says how it is compiled.

#include "apps/hpl/simulation.hpp"
#include "models/machine_file.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

int main(int count, char** arguments) {
    if (count != 6 && count != 7) {
        std::fputs("usage: profile MACHINE N NB P Q [STEPS]\n", stderr);
        return 2;
    }
    std::ifstream file(arguments[1]);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    lepaute::hpl::Parameters parameters;
    parameters.n = std::atoll(arguments[2]);
    parameters.nb = std::atoll(arguments[3]);
    parameters.p = static_cast<std::uint32_t>(std::atoi(arguments[4]));
    parameters.q = static_cast<std::uint32_t>(std::atoi(arguments[5]));
    parameters.trial_steps = count == 7 ? std::atoll(arguments[6]) : 0;
    std::vector<std::uint32_t> cores(parameters.ranks());
    std::iota(cores.begin(), cores.end(), 0U);
    const std::clock_t before = std::clock();
    const auto result = lepaute::hpl::simulate(parameters, lepaute::models::machine_of_text(text), {}, cores,
                                               lepaute::models::Seeds{1});
    const double spent_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    std::uint64_t sent = 0; // all messages but those of pivot exchanges
    for (const lepaute::hpl::SentInPhases& of_rank : result.rank_sent) {
        for (const lepaute::hpl::Sent& in_phase : of_rank) {
            sent += in_phase.messages;
        }
    }
    std::printf("%.17g s, %llu messages; %.2f s of CPU time, %.0f ns for each of %llu messages outside of panels\n",
                result.time_s, static_cast<unsigned long long>(result.messages), spent_s,
                1e9 * spent_s / static_cast<double>(sent), static_cast<unsigned long long>(sent));
}
