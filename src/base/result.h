// Result<T>, and the two macros that let failure leave in a straight line.
#pragma once

#include <expected>
#include <utility>

#include "base/error.h"

namespace orrery {

/// A value or an Error. `return Error(...)` works in a function that returns a Result.
template <typename T = void>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using Base = std::expected<T, Error>;
  using Base::Base;
  Result(Error error) : Base(std::unexpected(std::move(error))) {}  // NOLINT: implicit by design
};

}  // namespace orrery

#define ORRERY_CONCAT_(a, b) a##b
#define ORRERY_CONCAT(a, b) ORRERY_CONCAT_(a, b)

#define ORRERY_TRY_VALUE_(name, leave, declaration, ...) \
  auto name = (__VA_ARGS__);                             \
  if (!name) [[unlikely]] {                              \
    leave ::orrery::Error(std::move(name).error());      \
  }                                                      \
  declaration = std::move(*name)

// A result that has a name is looked at where it is, and stays as it is.
#define ORRERY_TRY_VOID_(name, leave, ...)             \
  if (auto&& name = (__VA_ARGS__); !name) [[unlikely]] \
  leave ::orrery::Error(std::forward<decltype(name)>(name).error())

#define ORRERY_TRY_PICK_(name, leave, first, ...)                \
  __VA_OPT__(ORRERY_TRY_VALUE_(name, leave, first, __VA_ARGS__)) \
  ORRERY_TRY_ELSE_##__VA_OPT__(NONE_)(name, leave, first)
#define ORRERY_TRY_ELSE_(name, leave, first) ORRERY_TRY_VOID_(name, leave, first)
#define ORRERY_TRY_ELSE_NONE_(name, leave, first)

/// ORRERY_TRY(auto key, parse(header));   declares key, or returns the error
/// ORRERY_TRY(check(header));             returns the error, if there is one
#define ORRERY_TRY(...) ORRERY_TRY_PICK_(ORRERY_CONCAT(tried_, __LINE__), return, __VA_ARGS__)

/// The same inside a coroutine that returns Async<T>.
#define ORRERY_CO_TRY(...) ORRERY_TRY_PICK_(ORRERY_CONCAT(tried_, __LINE__), co_return, __VA_ARGS__)
