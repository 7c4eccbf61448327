// Binds a query to its container's policies for vectors and full text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "query/bind/bind.h"
#include "query/bind/settings.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// Appends to a bound call what its function wants to know of the policies (Function::hidden): of
/// the path of the document, source `document`, that is an argument. Null settings: none.
void append_hidden_argument(Call& call, const Sources& sources, std::size_t document,
                            const Settings* settings);

/// The unknown distance function that the constant options of a bound call of VectorDistance or
/// _VectorScore name, as an error message. Nothing when they name a known one or none.
std::optional<std::string> unknown_distance_function(const Call& call);

/// Whether the expression, not bound yet, is a score that can be ordered by.
bool is_score(const Expression& expression);

/// Sets how the score of a bound item is ordered: the best first, and a distance is best when it is
/// small. Options of the call override the container's policy.
void set_score_order(OrderItem& item);

}  // namespace orrery::query
