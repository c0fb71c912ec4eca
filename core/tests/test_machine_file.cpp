#include "models/machine_file.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lepaute::models {
namespace {

Machine some_machine() {
    Machine machine;
    machine.nodes = 3;
    machine.cores_per_node = 4;
    machine.cpus_per_node = 2;
    machine.sockets_per_node = 2;
    machine.cpu_is_core_modulo = false;
    KernelPiece piece;
    piece.where = {{0.0, 0.0, 0.0}, {1e300, 128.0, 1e300}};
    piece.fitted = {{1.0, 1.0, 2.0}, {8000.0, 8000.0, 256.0}};
    piece.fitted_parts = {{{1.0, 1.0, 2.0}, {8000.0, 64.0, 64.0}}, {{1.0, 1.0, 128.0}, {8000.0, 8000.0, 256.0}}};
    piece.mean = {1e-11, -2e-12, 0.1 + 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0 / 3.0};
    piece.deviation[0] = 5e-324;
    piece.noise = Noise::half_normal;
    piece.covariance_terms = {0, 8};
    piece.covariance = {1.0, 0.5, 0.5, 2.0};
    piece.modes = {{0.75, -0.5, 0.25}, {1.0, 1.5, 0.1 + 0.2}};
    piece.discrepancy_relative_sd = 0.02;
    machine.kernels = {{.name = "dgemm",
                        .models = std::vector<KernelModel>(6, KernelModel({piece, piece})), // of each socket
                        .discrepancy_relative_sd = 0.01},
                       {.name = "dtrsm",
                        .models = {KernelModel({piece})},
                        .crowding = {{0.5, 0.02}, {1.0, 0.1}},
                        .crowding_relative_sd = 0.03}};
    machine.day_run_relative_sd = 0.03;
    machine.day_run_degrees_of_freedom = 12;
    machine.episode_s = 0.1;
    machine.network.remote.segments = {{0.0, Protocol::eager, 1e-6, 1e9, {1e-7, 1e-10}, {}, {}, 0.0},
                                       {64000.0, Protocol::rendezvous, 1e-5, 1.2e10, {}, {}, {}, 0.25}};
    machine.network.remote.segments[0].noise =
        centred(std::vector<NoiseMode>{{0.7, -0.1, 0.05}, {0.3, 1.0 / 3.0, 0.2}});
    machine.network.remote.fitted_high_bytes = 1e9;
    machine.network.loopback.segments = {machine.network.remote.segments[1]};
    machine.network.loopback.segments[0].above_bytes = 0.0;
    machine.network.flow_factor = FlowFactor::scale;
    return machine;
}

TEST(MachineFile, KeepsEveryNumberToTheLastBit) {
    const Machine before = some_machine();
    const std::string text = machine_text(before);
    const Machine after = machine_of_text(text);
    EXPECT_EQ(machine_text(after), text);
    ASSERT_EQ(after.kernels.size(), 2U);
    EXPECT_EQ(after.kernels[1].name, "dtrsm");
    ASSERT_EQ(after.kernels[1].crowding.size(), 2U);
    EXPECT_EQ(after.kernels[1].crowding[1].increase, 0.1);
    EXPECT_EQ(after.kernels[1].crowding_relative_sd, 0.03);
    EXPECT_EQ(after.sockets_per_node, 2U);
    const std::vector<KernelModel>& dgemm = after.kernels[0].models;
    const std::vector<KernelModel>& dgemm_before = before.kernels[0].models;
    EXPECT_EQ(after.kernels[0].discrepancy_relative_sd, 0.01);
    ASSERT_EQ(dgemm.size(), 6U);
    ASSERT_EQ(dgemm[0].pieces().size(), 2U);
    EXPECT_EQ(dgemm[0].pieces()[1].mean, dgemm_before[0].pieces()[1].mean);
    EXPECT_EQ(dgemm[0].pieces()[0].deviation[0], 5e-324);
    ASSERT_EQ(dgemm[0].pieces()[0].fitted_parts.size(), 2U);
    EXPECT_EQ(dgemm[0].pieces()[0].fitted_parts[1].low.k, 128.0);
    EXPECT_EQ(dgemm[0].pieces()[0].discrepancy_relative_sd, 0.02);
    EXPECT_EQ(after.day_run_relative_sd, 0.03);
    EXPECT_EQ(after.day_run_degrees_of_freedom, 12);
    ASSERT_EQ(dgemm[1].pieces()[0].modes.size(), 2U);
    EXPECT_EQ(dgemm[1].pieces()[0].modes[1].deviation, 0.1 + 0.2);
    EXPECT_EQ(after.network.remote.segments[1].noise_relative_sd, 0.25);
    ASSERT_EQ(after.network.remote.segments[0].noise.modes.size(), 2U);
    EXPECT_EQ(after.network.remote.segments[0].noise.modes[1].mean,
              before.network.remote.segments[0].noise.modes[1].mean);
    EXPECT_EQ(after.network.remote.fitted_high_bytes, 1e9);
    EXPECT_FALSE(after.cpu_is_core_modulo);
    EXPECT_EQ(after.network.flow_factor, FlowFactor::scale);
}

TEST(MachineFile, RefusesWhatIsNotOne) {
    const std::string text = machine_text(some_machine());
    EXPECT_THROW((void)machine_of_text(""), std::invalid_argument);
    EXPECT_THROW((void)machine_of_text("lepaute-machine/4 1 2 3"), std::invalid_argument);
    std::string unknown = text;
    unknown.replace(unknown.find("half-normal"), 4, "full");
    EXPECT_THROW((void)machine_of_text(unknown), std::invalid_argument);
    EXPECT_THROW((void)machine_of_text(text + " 1"), std::invalid_argument);
    EXPECT_THROW((void)machine_of_text(text.substr(0, text.size() / 2)), std::invalid_argument);
    EXPECT_THROW((void)machine_of_text("lepaute-machine/4 1 1 1 1 99999999999999"), std::invalid_argument);
}

/// What is said of the machine's text with its first numbers replaced.
std::string refusal(const std::string& first_numbers) {
    std::string text = machine_text(some_machine());
    const std::string before = "lepaute-machine/9\n3 4 2 0 2 1 ";
    EXPECT_TRUE(text.starts_with(before));
    try {
        static_cast<void>(machine_of_text(text.replace(0, before.size(), "lepaute-machine/9\n" + first_numbers)));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "none";
}

TEST(MachineFile, RefusesNumbersThatItsFieldsDoNotHold) {
    EXPECT_EQ(refusal("3 4 2 0 2 1 "), "none");
    EXPECT_EQ(refusal("4294967299 4 2 0 2 1 "),
              "has '4294967299' where a number that its field holds should be"); // 3, narrowed
    EXPECT_EQ(refusal("-1 4 2 0 2 1 "), "has '-1' where a number that its field holds should be");
    EXPECT_EQ(refusal("3 4 2 2 2 1 "), "has '2' where 0 or 1 should be");
    EXPECT_EQ(refusal("3 0 2 0 2 1 "), "cores_per_node is 0; it is 1 to 65536");
    EXPECT_EQ(refusal("3 4 3 0 2 1 "), "cpus_per_node is 3; 4 cores cannot be divided evenly among them");
}

} // namespace
} // namespace lepaute::models
