// The built-in functions.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "json/value.h"
#include "query/lexer.h"

namespace orrery::query {

using Arguments = std::span<const json::Value* const>;

inline constexpr std::uint8_t kAnyNumber = std::numeric_limits<std::uint8_t>::max();

/// A function is pure: its value depends on its arguments only. Arguments of the wrong type make it
/// undefined.
struct Function {
  std::string_view name;  ///< in upper case
  std::uint8_t arguments_min;
  std::uint8_t arguments_max;      ///< kAnyNumber: no bound
  json::Value (*call)(Arguments);  ///< what it returns refers to nothing of the arguments' own
  /// Whether undefined arguments reach `call`. Otherwise one of them makes the result undefined.
  bool takes_undefined = false;
};

/// In any case; nothing if there is none of that name. The function lives for ever.
const Function* find_function(std::string_view name);

/// Whether it is the name, in any case, of a function over many rows.
bool is_aggregate(std::string_view name);

// The table, one part per subject. A new function is a line there.
std::span<const Function> type_functions();
std::span<const Function> text_functions();
std::span<const Function> math_functions();
std::span<const Function> array_functions();

}  // namespace orrery::query
