// Shows a person where the mistake is in a query.
#pragma once

#include <string>
#include <string_view>

#include "orrery/exception.h"

namespace orrery::cli {

/// The line of `query` that the mistake is in, indented, and under it carets at its place:
///
///   SELECT * FORM c
///            ^^^^
///
/// Of a long line, what is near the place. With the number of the line where there are several.
std::string point_at(std::string_view query, client::TextLocation where);

}  // namespace orrery::cli
