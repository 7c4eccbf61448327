// Errors of a query text, with their place, in the form that clients know.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace orrery::query {

/// Bytes of a query text, from `begin` to before `end`.
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool operator==(const Span&) const = default;
};

inline Span joined(Span first, Span last) { return {first.begin, last.end}; }

/// BadRequest, with this message:
///
///   Message: {"errors":[{"severity":"Error","location":{"start":7,"end":11},"code":"SC1001",
///   "message":"Syntax error, incorrect syntax near 'FROM'."}]}
///
/// in one line. The location counts UTF-16 units of `text`; `code` is left out when it is empty.
Error text_error(std::string_view text, Span where, std::string_view code,
                 std::string_view message);

/// SC1001 about the token at `where`, or SC1002 when the text ends there.
Error syntax_error_near(std::string_view text, Span where);

}  // namespace orrery::query
