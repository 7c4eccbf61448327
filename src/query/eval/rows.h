// The rows of a query within one document: what FROM and JOIN make of it, and the values of
// subqueries.
#pragma once

#include <functional>

#include "json/value.h"
#include "query/eval/evaluate.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// Says whether to go on.
using RowVisitor = std::function<bool()>;

/// Calls `visit` for each row of FROM that passes WHERE, with the row's sources in the frame; once
/// where there is no FROM. The document of a whole query is in the frame already. False when it was
/// told to end, or when something failed (Frame::failure).
bool for_each_row(const Query& query, Frame& frame, const RowVisitor& visit);

/// Materialises the select list for the row that is in the frame: undefined where VALUE is. Owns
/// all of it.
json::Value selected(const Query& query, Frame& frame);
/// The same as JSON text, appended to `out`. False where it is undefined; nothing is appended then.
/// Sets `has_unfit_number` where there is a number that JSON has not.
bool append_selected(const Query& query, Frame& frame, std::string& out, bool& has_unfit_number);

/// NaN or an infinite number, at any depth.
bool has_number_not_in_json(const json::Value& value);
/// The error of a query that shows one.
Error number_not_in_json();

/// The value of a subquery in an expression.
json::Value subquery_value(const Subquery& subquery, Frame& frame);

}  // namespace orrery::query
