#pragma once
// What values that come from outside of the core must hold. A struct says the least and the most value of a field in
// fields(), where it visits it: visit("nodes", &Machine::nodes, 1, most_nodes); and what no field says by itself in
// check(). check_all() asks a value and all inside of it, so that a message names the place:
//   network.remote.segments[2].bandwidth_Bps is nan; it is a number from 1e-09 to 1e+300

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lepaute {

// Bounds of what a model may say. They are far beyond anything that is measured, and such that no sum or product of
// numbers within them is more than a double holds: a date that is infinite would never come.
inline constexpr double most_seconds = 1e15; // of an overhead, a latency, an episode
inline constexpr double least_Bps = 1e-9;
inline constexpr double most_Bps = 1e300;
inline constexpr double most_relative_sd = 1e6;
inline constexpr double most_coefficient = 1e12; // seconds per unit of a term

template <class Number>
    requires std::is_arithmetic_v<Number>
[[nodiscard]] std::string text_of(Number number) {
    std::array<char, 32> digits{};
    return {digits.begin(), std::to_chars(digits.begin(), digits.end(), number).ptr};
}

/// Throws std::invalid_argument: "NAME is FOUND; EXPECTED".
[[noreturn]] inline void refuse(std::string_view name, const std::string& found, const std::string& expected) {
    throw std::invalid_argument(std::string(name) + " is " + found + "; " + expected);
}

/// Throws std::invalid_argument for a number outside of [low, high], and for NaN.
template <class Number>
void check_number(std::string_view name, Number number, std::type_identity_t<Number> low,
                  std::type_identity_t<Number> high) {
    if (!(low <= number && number <= high)) {
        refuse(name, text_of(number),
               std::string(std::integral<Number> ? "it is " : "it is a number from ") + text_of(low) + " to " +
                   text_of(high));
    }
}
inline void check_seconds(std::string_view name, double seconds) { check_number(name, seconds, 0.0, most_seconds); }
inline void check_bandwidth(std::string_view name, double Bps) { check_number(name, Bps, least_Bps, most_Bps); }
inline void check_relative_sd(std::string_view name, double sd) { check_number(name, sd, 0.0, most_relative_sd); }

/// Does what `check` does; the message of an exception begins with the place.
template <class Check>
void check_in(std::string_view place, Check check) {
    try {
        check();
    } catch (const std::invalid_argument& error) {
        const std::string_view rest = error.what();
        throw std::invalid_argument(std::string(place).append(rest.starts_with('[') ? "" : ".").append(rest));
    }
}

template <class Value>
concept Checked = requires(const Value& value) { value.check(); };
template <class Value>
concept Visited = requires { Value::fields([](const char*, auto, auto...) {}); };

template <class Value>
void check_all(const std::vector<Value>& values);

/// Checks the value and all that its fields hold. Throws std::invalid_argument, in one line that begins with the field.
template <class Value>
void check_all(const Value& value) {
    if constexpr (Visited<Value>) { // check() may rely on the bounds of single fields
        Value::fields([&]<class Number>(const char* name, Number Value::*field, auto... bounds) {
            if constexpr (sizeof...(bounds) > 0) {
                check_number(name, value.*field, static_cast<Number>(bounds)...);
            }
        });
    }
    if constexpr (Checked<Value>) {
        value.check();
    }
    if constexpr (Visited<Value>) {
        Value::fields([&](const char* name, auto field, auto... /*bounds*/) {
            check_in(name, [&] { check_all(value.*field); });
        });
    }
}
template <class Value>
void check_all(const std::vector<Value>& values) {
    if constexpr (Checked<Value> || Visited<Value>) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            check_in("[" + text_of(i) + "]", [&] { check_all(values[i]); });
        }
    }
}

} // namespace lepaute
