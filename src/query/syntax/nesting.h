// Queries that others begin their FROM with.
#pragma once

#include "query/syntax/ast.h"

namespace orrery::query {

/// The one that FROM begins with; null: it begins with something else.
const Query* subquery_of(const Query& query);

/// Whether its rows are made of documents at all: FROM begins with the container, at whatever
/// depth.
bool reads_container(const Query& query);

/// Whether each row comes of one document, so that all ranges together give all rows.
bool is_row_by_row(const Query& query);

}  // namespace orrery::query
