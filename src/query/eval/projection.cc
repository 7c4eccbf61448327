#include "query/eval/projection.h"

#include <utility>

#include <fmt/format.h>

#include "query/eval/evaluate.h"
#include "query/eval/rows.h"
#include "query/syntax/parser.h"

namespace orrery::query {

struct Projection::Bound {
  NamedDocuments documents;
  std::string reserved;
  Query query = {};
};

namespace {

constexpr std::string_view kUnnamed = "$1";

json::Value object_of_value(const json::Value& value, std::string_view reserved) {
  if (value.is_object()) {
    // White space alone would look like members when one is added.
    if (value.size() == 0) return json::Value::object();
    json::Value object = json::Value::referring_to(value);
    if (!reserved.empty() && !object.member(reserved).is_undefined()) {
      object.erase_member(reserved);
    }
    return object;
  }
  json::Value object = json::Value::object();
  object.set_member(kUnnamed, json::Value::referring_to(value));
  return object;
}

}  // namespace

Result<Projection> Projection::parse(std::string_view text,
                                     std::span<const std::string_view> aliases,
                                     std::string_view reserved, const Settings& settings) {
  ORRERY_TRY(check_text(text));
  auto bound = std::make_shared<Bound>(NamedDocuments(aliases), std::string(reserved));
  Query& query = bound->query;
  ORRERY_TRY(query.selection, Parser(text).parse_selection());
  ORRERY_TRY(bound->documents.bind(query, text, settings));
  for (const Selection::Item& item : query.selection.items) {
    if (!reserved.empty() && item.name == reserved) {
      return text_error(
          text, item.span, "SC2022",
          fmt::format("Object creation error, property name '{}' specified more than once.",
                      item.name));
    }
  }
  return Projection(std::move(bound));
}

bool Projection::is_star() const { return bound_->query.selection.kind == Selection::Kind::Star; }

Result<bool> Projection::show(std::string& out, std::span<const json::Value> documents,
                              WorkBudget* work) const {
  const Selection& selection = bound_->query.selection;
  if (selection.kind == Selection::Kind::Star) {
    const bool is_there = !documents.empty() && documents.front().is_object();
    (is_there ? json::Value::referring_to(documents.front()) : json::Value::object())
        .append_to(out);
    return true;
  }
  Frame frame = bound_->documents.frame_of(documents);
  frame.work = work;
  if (selection.kind == Selection::Kind::Value) {
    json::Value scratch;
    const json::Value& value = evaluate(*selection.items.front().expression, frame, scratch);
    if (frame.failure) return Error(*std::move(frame.failure));
    if (has_number_not_in_json(value)) return number_not_in_json();
    const json::Value object = object_of_value(value, bound_->reserved);
    if (object.weight() > kBytesMax) return false;
    object.append_to(out);
    return true;
  }
  const std::size_t begin = out.size();
  std::size_t weight = 0;
  out += '{';
  for (const Selection::Item& item : selection.items) {
    json::Value scratch;
    const json::Value& value = evaluate(*item.expression, frame, scratch);
    if (frame.failure || has_number_not_in_json(value)) {
      out.resize(begin);
      return frame.failure ? Error(*std::move(frame.failure)) : number_not_in_json();
    }
    if (value.is_undefined()) continue;
    weight += item.name.size() + value.weight();
    if (weight > kBytesMax) {
      out.resize(begin);
      return false;
    }
    if (out.size() > begin + 1) out += ',';
    json::Value::string_at(item.name).append_to(out);
    out += ':';
    value.append_to(out);
  }
  out += '}';
  return true;
}

}  // namespace orrery::query
