#include "query/eval/rows.h"

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "json/sort_key.h"
#include "query/eval/aggregate.h"

namespace orrery::query {

using json::Value;

namespace {

using ValueVisitor = std::function<bool(Value)>;

/// One more row of a subquery or join, over this. False when there were too many, or when they took
/// too long.
bool counted(Frame& frame, const Value& value) {
  if (!frame.spend_for(value)) return false;
  if (++frame.subquery_rows <= kSubqueryRowsMax) return true;
  frame.failure = Error(ErrorCode::BadRequest,
                        fmt::format("JOINs and subqueries make more than {} rows of one document: "
                                    "filter earlier, or join less.",
                                    kSubqueryRowsMax));
  return false;
}

Error too_large(std::string_view what) {
  return Error(
      ErrorCode::RequestTooLarge,
      fmt::format("The query needs more memory than a request may have: {}. Select less.", what));
}

/// Whether a value may be copied, or shown; else that ends the query. A short text can ask for
/// what is in a document again and again.
bool fits(const Value& value, Frame& frame) {
  if (value.text() || value.weight() <= kValueBytesMax) return true;
  frame.failure = too_large(
      fmt::format("a row or the value of a subquery has more than {} bytes", kValueBytesMax));
  return false;
}

bool for_each_value(const Query& query, Frame& frame, const ValueVisitor& visit);

/// Goes over the sources from number `at` on.
bool descend(const Query& query, std::size_t at, Frame& frame, const RowVisitor& visit);

bool with_source(const Query& query, std::size_t at, const Value& value, Frame& frame,
                 const RowVisitor& visit) {
  if (!counted(frame, value)) return false;
  frame.row.set(query.from[at].source, value);
  return descend(query, at + 1, frame, visit);
}

bool with_collection(const Query& query, std::size_t at, const Value& collection, Frame& frame,
                     const RowVisitor& visit) {
  if (!query.from[at].is_iteration) {
    return collection.is_undefined() || with_source(query, at, collection, frame, visit);
  }
  if (!collection.is_array()) return true;
  for (json::Reader elements(collection); elements.next();) {
    if (!with_source(query, at, elements.value(), frame, visit)) return false;
  }
  return true;
}

bool descend(const Query& query, std::size_t at, Frame& frame, const RowVisitor& visit) {
  if (at == query.from.size()) {
    if (query.where && !is_true(*query.where, frame)) return !frame.failure;
    return visit() && !frame.failure;
  }
  const FromItem& item = query.from[at];
  if (item.is_document()) return descend(query, at + 1, frame, visit);
  if (const auto* inner = std::get_if<Subquery>(&item.collection->node)) {
    return for_each_value(*inner->query, frame, [&](Value value) {
      return with_collection(query, at, value, frame, visit);
    });
  }
  Value scratch;
  // A reference to what is in the row would not survive the sources that are set below it.
  const Value collection = Value::referring_to(evaluate(*item.collection, frame, scratch));
  return with_collection(query, at, collection, frame, visit);
}

/// DISTINCT, OFFSET, LIMIT and TOP of a subquery, in this order.
class Window {
 public:
  explicit Window(const Query& query)
      : is_distinct_(query.is_distinct),
        skip_(query.offset ? query.offset->value : 0),
        left_(std::numeric_limits<std::uint64_t>::max()) {
    if (query.limit) left_ = query.limit->value;
    if (query.top) left_ = std::min(left_, query.top->value);
  }

  bool is_over() const { return left_ == 0; }
  bool passes(const Value& value) {
    if (is_distinct_ && !seen_.insert(json::hash_of(value)).second) return false;
    if (skip_ > 0) {
      --skip_;
      return false;
    }
    --left_;
    return true;
  }

 private:
  bool is_distinct_;
  std::uint64_t skip_;
  std::uint64_t left_;
  std::set<json::Hash128> seen_;
};

bool for_each_value(const Query& query, Frame& frame, const ValueVisitor& visit) {
  Window window(query);
  bool goes_on = true;
  const auto offer = [&](Value value) {
    if (value.is_undefined() || frame.failure || !window.passes(value)) return !frame.failure;
    goes_on = visit(std::move(value));
    return goes_on && !window.is_over();
  };
  if (window.is_over()) return true;
  if (query.is_grouped()) {
    Groups groups(query);
    for_each_row(query, frame, [&] {
      groups.add(frame);
      if (groups.memory() <= kSubqueryGroupsBytesMax) return true;
      frame.failure = too_large("the groups or lists of a subquery are too many");
      return false;
    });
    for (const auto& [key, group] : groups.sorted()) {
      if (frame.failure || !offer(groups.show(*group, frame))) break;
    }
  } else {
    for_each_row(query, frame, [&] { return offer(selected(query, frame)); });
  }
  return goes_on && !frame.failure;
}

/// Whether the filter of a subquery holds for all its rows.
bool holds_for_all(const Query& query, Frame& frame) {
  bool all = true;
  for_each_value(query, frame, [&](const Value& value) { return all = value.is_true(); });
  return all;
}

/// The value of a select list of the kind Star or Value, without a copy.
const Value& single_value(const Query& query, Frame& frame, Value& scratch) {
  if (query.selection.kind == Selection::Kind::Value) {
    return evaluate(*query.selection.items.front().expression, frame, scratch);
  }
  return frame.row.at(query.star);
}

/// Whether the text of a number is what we print of it. Of some that are it says no: those cost
/// the time to read and to print them.
bool is_as_printed(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::size_t kIntegerDigitsMax = 18;
  constexpr std::size_t kDoubleDigitsMax = 15;
  if (text == "-0") return false;
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t point = text.find_first_not_of(kDigits);
  if (point == std::string_view::npos) return text.size() <= kIntegerDigitsMax;
  // Smaller numbers are printed with an exponent.
  return text[point] == '.' && text.size() <= kDoubleDigitsMax + 1 && !text.ends_with('0') &&
         !text.starts_with("0.0000") &&
         text.find_first_not_of(kDigits, point + 1) == std::string_view::npos;
}

/// Otherwise its text will do.
bool needs_printing(const Value& number) {
  const auto text = number.text();
  return !text || !is_as_printed(*text);
}

/// Numbers become what their texts say, so that they are printed as such. Arrays and objects that
/// are read from a text stay as they are written.
void read_numbers(Value& value) {
  if (value.is_number()) {
    if (needs_printing(value)) value = Value::number(value.as_number());
    return;
  }
  if (value.text()) return;
  if (value.is_array()) {
    for (Value& element : value.elements()) read_numbers(element);
  } else if (value.is_object()) {
    for (json::Member& member : value.members()) read_numbers(member.value);
  }
}

/// Appends what append_to would after read_numbers. False where there is a number that JSON has
/// not.
bool append_printed(std::string& out, const Value& value) {
  if (value.is_number() && needs_printing(value)) {
    const json::Number number = value.as_number();
    Value::number(number).append_to(out);
    return std::isfinite(number.real);
  }
  if (value.text() || !(value.is_array() || value.is_object())) {
    value.append_to(out);
    return true;
  }
  bool is_fit = true;
  bool is_first = true;
  out.push_back(value.is_array() ? '[' : '{');
  for (json::Reader reader(value); reader.next();) {
    const Value each = reader.value();
    if (each.is_undefined()) continue;
    if (!std::exchange(is_first, false)) out.push_back(',');
    if (value.is_object()) {
      reader.name().append_to(out);
      out.push_back(':');
    }
    if (!append_printed(out, each)) is_fit = false;
  }
  out.push_back(value.is_array() ? ']' : '}');
  return is_fit;
}

}  // namespace

bool for_each_row(const Query& query, Frame& frame, const RowVisitor& visit) {
  return descend(query, 0, frame, visit);
}

Value selected(const Query& query, Frame& frame) {
  Value scratch;
  if (query.selection.kind != Selection::Kind::List) {
    const Value& shown = single_value(query, frame, scratch);
    if (!fits(shown, frame)) return {};
    Value value(shown);
    value.own();
    read_numbers(value);
    return value;
  }
  std::vector<json::Member> members;
  members.reserve(query.selection.items.size());
  for (const Selection::Item& item : query.selection.items) {
    const Value& shown = evaluate(*item.expression, frame, scratch);
    if (shown.is_undefined()) continue;
    if (!fits(shown, frame)) return {};
    Value value(shown);
    value.own();
    read_numbers(value);
    members.push_back({Value::string(item.name), std::move(value)});
  }
  return Value::object(std::move(members));
}

bool has_number_not_in_json(const Value& value) {
  // A value that still is text can be written as it is; numbers that cannot were read.
  if (value.text()) return false;
  if (value.is_number()) return !std::isfinite(value.as_number().real);
  for (json::Reader reader(value); reader.next();) {
    if (has_number_not_in_json(reader.value())) return true;
  }
  return false;
}

Error number_not_in_json() {
  return Error(ErrorCode::NumberNotInJson,
               "The response content contains a numeric value that cannot be represented in JSON "
               "(e.g. Infinity and NaN).");
}

bool append_selected(const Query& query, Frame& frame, std::string& out, bool& has_unfit_number) {
  Value scratch;
  if (query.selection.kind != Selection::Kind::List) {
    const Value& value = single_value(query, frame, scratch);
    if (value.is_undefined() || !fits(value, frame)) return false;
    has_unfit_number = !append_printed(out, value);
    return true;
  }
  out.push_back('{');
  bool is_first = true;
  for (const Selection::Item& item : query.selection.items) {
    const Value& value = evaluate(*item.expression, frame, scratch);
    if (value.is_undefined()) continue;
    if (!fits(value, frame)) return false;
    if (!std::exchange(is_first, false)) out.push_back(',');
    Value::string_at(item.name).append_to(out);
    out.push_back(':');
    if (!append_printed(out, value)) has_unfit_number = true;
  }
  out.push_back('}');
  return true;
}

Value subquery_value(const Subquery& subquery, Frame& frame) {
  const Query& query = *subquery.query;
  using Kind = Subquery::Kind;
  switch (subquery.kind) {
    case Kind::Exists: {
      bool found = false;
      for_each_value(query, frame, [&](const Value&) {
        found = true;
        return false;
      });
      return Value::boolean(found);
    }
    case Kind::All:
      return Value::boolean(holds_for_all(query, frame));
    case Kind::Array: {
      std::vector<Value> elements;
      for_each_value(query, frame, [&](Value value) {
        frame.made_bytes += value.weight();
        elements.push_back(std::move(value));
        return frame.made_bytes <= kMadeBytesMax;
      });
      return frame.made_bytes <= kMadeBytesMax ? Value::array(std::move(elements)) : Value();
    }
    case Kind::Last: {
      Value last;
      for_each_value(query, frame, [&](Value value) {
        last = std::move(value);
        return true;
      });
      return last;
    }
    case Kind::Scalar:
    case Kind::First: {
      Value first;
      for_each_value(query, frame, [&](Value value) {
        first = std::move(value);
        return false;
      });
      return first;
    }
  }
  return {};
}

}  // namespace orrery::query
