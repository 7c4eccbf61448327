// The built-in functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/work_budget.h"
#include "json/value.h"
#include "query/syntax/ast.h"
#include "query/syntax/lexer.h"

namespace orrery::query {

/// The arguments of a call.
class Arguments : public std::span<const json::Value* const> {
 public:
  using std::span<const json::Value* const>::span;
  // Not explicit: parts of arguments are arguments.
  Arguments(std::span<const json::Value* const> values) : span(values) {}
  Arguments(std::span<const json::Value* const> values, WorkBudget* work)
      : span(values), work_(work) {}

  /// For functions that may take much longer than it takes to look at their arguments once. False:
  /// they must end; what they return does not matter.
  bool spend(std::uint64_t steps) const { return work_ == nullptr || work_->spend(steps); }
  WorkBudget* work() const { return work_; }

 private:
  WorkBudget* work_ = nullptr;
};

inline constexpr std::uint8_t kAnyNumber = std::numeric_limits<std::uint8_t>::max();

/// The inputs of a function besides its arguments. The same for all rows of a query.
struct Surroundings {
  std::int64_t begun_ticks = 0;  ///< when the query began: 100 ns since 1970
  bool is_planar = false;        ///< the container's geometry is flat, not that of the earth
};

/// Arguments of the wrong type make it undefined.
struct Function {
  enum class Kind : std::uint8_t {
    Pure,      ///< its value depends on its arguments only: computed once where they are constant
    PerQuery,  ///< and on the surroundings: likewise once per query
    PerRow,    ///< another one each time, such as RAND
  };
  /// The argument that bind appends to a call, from the container's policies for the path that is
  /// the first argument. The counts of arguments below are without it.
  enum class Hidden : std::uint8_t {
    None,
    Language,      ///< a string such as "en-US"
    VectorPolicy,  ///< {"distanceFunction":…,"dataType":…}, or undefined where no policy names it
  };
  std::string_view name;  ///< in upper case
  std::uint8_t arguments_min;
  std::uint8_t arguments_max;      ///< kAnyNumber: no bound
  json::Value (*call)(Arguments);  ///< what it returns refers to nothing of the arguments' own
  /// Whether undefined arguments reach `call`. Otherwise one of them makes the result undefined.
  bool takes_undefined = false;
  Kind kind = Kind::Pure;
  Hidden hidden = Hidden::None;
  /// Whether counts of arguments between the least and the most are wrong, too.
  bool is_least_or_most = false;
  /// Instead of `call`, for those that need them.
  json::Value (*call_in)(Arguments, const Surroundings&) = nullptr;

  /// Whether it can be called with so many arguments.
  constexpr bool takes(std::size_t count) const {
    if (is_least_or_most) return count == arguments_min || count == arguments_max;
    return count >= arguments_min && (arguments_max == kAnyNumber || count <= arguments_max);
  }
};

/// In any case; nothing if there is none of that name. The function lives for ever.
const Function* find_function(std::string_view name);

/// In any case; nothing if it is not the name of a function over many rows.
std::optional<AggregateKind> find_aggregate(std::string_view name);

// The table, one part per subject. A new function is a line there.
std::span<const Function> type_functions();
std::span<const Function> text_functions();
std::span<const Function> math_functions();
std::span<const Function> array_functions();
std::span<const Function> date_functions();
std::span<const Function> regex_functions();
std::span<const Function> spatial_functions();
std::span<const Function> full_text_functions();
std::span<const Function> vector_functions();

}  // namespace orrery::query
