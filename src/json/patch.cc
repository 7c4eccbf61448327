#include "json/patch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace orrery::json {
namespace {

Error of_operation(std::size_t index, const Error& error) {
  return Error(error.code(), fmt::format("For Operation({}): {}", index + 1, error.message()));
}

std::string text_of(const Pointer& pointer) {
  std::string text;
  for (const std::string& segment : pointer) text.append("/").append(segment);
  return text;
}

/// Digits without a leading zero, as JSON pointers have them.
std::optional<std::size_t> array_index(std::string_view segment) {
  if (segment.empty() || (segment.size() > 1 && segment.front() == '0')) return std::nullopt;
  if (!std::ranges::all_of(segment, is_digit)) return std::nullopt;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(segment.data(), segment.data() + segment.size(), index);
  // So many digits are beyond every array.
  if (error != std::errc()) return SIZE_MAX;
  return index;
}

Result<Pointer> pointer_member(const Value& operation, std::string_view name) {
  const Value value = operation.member(name);
  if (!value.is_string()) {
    return bad_request(
        fmt::format("'{}' must be a string: a JSON pointer such as \"/a/b\".", name));
  }
  std::string buffer;
  return parse_pointer(value.as_string(buffer));
}

/// A double that is a whole number, and tells it from all others, counts as an integer: `1.0` added
/// to a large integer must not lose its last digits.
Number exact(Number number) {
  constexpr double kExactMax = 9007199254740992.0;
  if (number.is_integer || std::abs(number.real) > kExactMax) return number;
  if (std::trunc(number.real) != number.real) return number;
  return Number::of(static_cast<std::int64_t>(number.real));
}

Number sum(Number a, Number b) {
  a = exact(a);
  b = exact(b);
  std::int64_t integer = 0;
  if (a.is_integer && b.is_integer && !__builtin_add_overflow(a.integer, b.integer, &integer)) {
    return Number::of(integer);
  }
  return Number::of(a.real + b.real);
}

}  // namespace

Result<Pointer> parse_pointer(std::string_view text) {
  if (text.empty())
    return bad_request("the whole document, \"\", cannot be patched: name a part of it.");
  if (text.front() != '/') {
    return bad_request(fmt::format("the path '{}' must begin with '/', as in \"/a/b\".", text));
  }
  Pointer pointer;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '/') {
      pointer.emplace_back();
    } else if (text[at] != '~') {
      pointer.back() += text[at];
    } else if (const char escaped = at + 1 < text.size() ? text[at + 1] : '\0';
               escaped == '0' || escaped == '1') {
      pointer.back() += escaped == '0' ? '~' : '/';
      ++at;
    } else {
      return bad_request(fmt::format(
          "the path '{}' has a '~' that is neither ~0 (for '~') nor ~1 (for '/').", text));
    }
  }
  return pointer;
}

// ── One operation on one document ────────────────────────────────────────────────────────────────

/// Walks from the top of a document to where an operation works.
class Patch::Step {
 public:
  Step(Value& document, Op op) : document_(document), op_(op) {}

  Result<> run(const Operation& operation) {
    switch (operation.op) {
      case Op::Add:
        return put(operation.path, Value::referring_to(operation.value), true);
      case Op::Set:
        return put(operation.path, Value::referring_to(operation.value), false);
      case Op::Replace: {
        ORRERY_TRY(auto place, locate_existing(operation.path, "replaced"));
        *place.existing = Value::referring_to(operation.value);
        return {};
      }
      case Op::Remove:
        return remove(operation.path);
      case Op::Increment:
        return increment(operation);
      case Op::Move:
        return move(operation);
    }
    return {};
  }

 private:
  struct Place {
    Value* parent = nullptr;    ///< an object or array
    std::size_t index = 0;      ///< in an array; its size for one beyond the last
    Value* existing = nullptr;  ///< what is there already
  };

  /// The object or array around the path's last segment; null, with the segment at which it ended,
  /// when there is none.
  Value* parent_of(const Pointer& path, std::string_view& ended_at) {
    Value* at = &document_;
    for (std::size_t level = 0; level + 1 < path.size(); ++level) {
      ended_at = path[level];
      if (at->is_object()) {
        at = at->find(path[level]);
      } else {
        const auto index = array_index(path[level]);
        at = index ? at->find(*index) : nullptr;
      }
      if (at == nullptr || (!at->is_object() && !at->is_array())) return nullptr;
    }
    return at;
  }

  Result<Place> place_in(Value& parent, const Pointer& path) {
    const std::string& last = path.back();
    Place place{.parent = &parent};
    if (parent.is_object()) {
      place.existing = parent.find(last);
      return place;
    }
    const std::size_t size = parent.size();
    if (last == "-") {
      place.index = size;
      return place;
    }
    const auto index = array_index(last);
    if (!index) {
      return bad_request(fmt::format(
          "{} Operation: '{}' is no index of the array at '{}'; it must be a whole number or '-'.",
          name_of(op_), last, text_of(Pointer(path.begin(), path.end() - 1))));
    }
    if (*index > size) {
      return bad_request(fmt::format(
          "{} Operation: the index {} in '{}' is out of array bounds; the array has {} element(s).",
          name_of(op_), last, text_of(path), size));
    }
    place.index = *index;
    place.existing = parent.find(*index);
    return place;
  }

  /// Where something is put, whether something is there or not.
  Result<Place> locate(const Pointer& path) {
    std::string_view ended_at;
    Value* parent = parent_of(path, ended_at);
    if (parent == nullptr) {
      return bad_request(fmt::format(
          "{} Operation can only create a child object of an existing node(array or object) and "
          "cannot create path recursively, no path found beyond: '{}'.",
          name_of(op_), ended_at));
    }
    return place_in(*parent, path);
  }

  Result<Place> locate_existing(const Pointer& path, std::string_view what_happens) {
    std::string_view ended_at;
    Value* parent = parent_of(path, ended_at);
    Place place;
    if (parent != nullptr) {
      ORRERY_TRY(place, place_in(*parent, path));
      if (place.existing == nullptr && parent->is_array()) {
        return bad_request(
            fmt::format("{} Operation: '{}' is out of array bounds; the array has {} element(s).",
                        name_of(op_), text_of(path), parent->size()));
      }
    }
    if (place.existing == nullptr) {
      return bad_request(fmt::format("{} Operation: the node to be {} is absent: '{}'.",
                                     name_of(op_), what_happens, text_of(path)));
    }
    return place;
  }

  Result<> put(const Pointer& path, Value value, bool inserts) {
    ORRERY_TRY(const Place place, locate(path));
    if (place.parent->is_object()) {
      place.parent->set_member(path.back(), std::move(value));
    } else if (place.existing == nullptr || inserts) {
      place.parent->insert_element(place.index, std::move(value));
    } else {
      *place.existing = std::move(value);
    }
    return {};
  }

  Result<> remove(const Pointer& path) {
    ORRERY_TRY(const Place place, locate_existing(path, "removed"));
    erase(place, path);
    return {};
  }

  static void erase(const Place& place, const Pointer& path) {
    if (place.parent->is_object()) {
      place.parent->erase_member(path.back());
    } else {
      place.parent->erase_element(place.index);
    }
  }

  Result<> increment(const Operation& operation) {
    ORRERY_TRY(const Place place, locate(operation.path));
    if (place.existing == nullptr) {
      return put(operation.path, Value::referring_to(operation.value), false);
    }
    if (!place.existing->is_number()) {
      return bad_request(fmt::format("{} Operation: the node at '{}' is not a number.",
                                     name_of(op_), text_of(operation.path)));
    }
    const Number result = sum(place.existing->as_number(), operation.value.as_number());
    if (!std::isfinite(result.real)) {
      return bad_request(
          fmt::format("{} Operation: the sum at '{}' is beyond what a number can hold.",
                      name_of(op_), text_of(operation.path)));
    }
    *place.existing = Value::number(result);
    return {};
  }

  Result<> move(const Operation& operation) {
    ORRERY_TRY(const Place place, locate_existing(operation.from, "moved"));
    if (operation.from == operation.path) return {};
    Value value = std::move(*place.existing);
    erase(place, operation.from);
    return put(operation.path, std::move(value), true);
  }

  Value& document_;
  const Op op_;
};

// ── The list ─────────────────────────────────────────────────────────────────────────────────────

std::string_view Patch::name_of(Op op) {
  switch (op) {
    case Op::Add:
      return "Add";
    case Op::Set:
      return "Set";
    case Op::Replace:
      return "Replace";
    case Op::Remove:
      return "Remove";
    case Op::Increment:
      return "Increment";
    case Op::Move:
      return "Move";
  }
  return {};
}

Result<Patch::Operation> Patch::parse_operation(const Value& value) {
  if (!value.is_object()) return bad_request("a patch operation must be a JSON object.");
  constexpr std::pair<std::string_view, Op> kOps[] = {
      {"add", Op::Add},       {"set", Op::Set},        {"replace", Op::Replace},
      {"remove", Op::Remove}, {"incr", Op::Increment}, {"move", Op::Move},
  };
  const Value op = value.member("op");
  Operation operation;
  const auto* known =
      std::ranges::find_if(kOps, [&](const auto& each) { return op.is_string(each.first); });
  if (known == std::end(kOps)) {
    constexpr std::size_t kShownMax = 40;
    const std::string shown = op.is_undefined() ? "missing" : op.to_text();
    return bad_request(fmt::format("'op' must be add, set, replace, remove, incr or move, not {}.",
                                   shown.size() <= kShownMax ? shown : "what it is"));
  }
  operation.op = known->second;
  ORRERY_TRY(operation.path, pointer_member(value, "path"));
  if (operation.op == Op::Move) {
    ORRERY_TRY(operation.from, pointer_member(value, "from"));
    const Pointer& from = operation.from;
    const Pointer& path = operation.path;
    if (path.size() > from.size() && std::equal(from.begin(), from.end(), path.begin())) {
      return bad_request(
          fmt::format("Move Operation: '{}' cannot be moved to '{}', which lies below it.",
                      text_of(from), text_of(path)));
    }
    return operation;
  }
  if (operation.op == Op::Remove) return operation;

  operation.value = value.member("value");
  if (operation.value.is_undefined()) {
    return bad_request(fmt::format("{} Operation lacks its 'value'.", name_of(operation.op)));
  }
  if (operation.op == Op::Increment &&
      (!operation.value.is_number() || !std::isfinite(operation.value.as_number().real))) {
    return bad_request("Increment Operation: 'value' must be a number that a double can hold.");
  }
  operation.value.own();
  return operation;
}

Result<Patch> Patch::parse(const Value& operations) {
  if (!operations.is_array()) return bad_request("The patch operations must be a JSON array.");
  const std::size_t count = operations.size();
  if (count == 0) return bad_request("A patch request must have at least one operation.");
  if (count > kOperationsMax) {
    return bad_request(fmt::format("The number of patch operations can't exceed {}; there are {}.",
                                   kOperationsMax, count));
  }
  Patch patch;
  for (Reader reader(operations); reader.next();) {
    auto operation = parse_operation(reader.value());
    if (!operation) return of_operation(patch.operations_.size(), operation.error());
    patch.operations_.push_back(std::move(*operation));
  }
  return patch;
}

Result<> Patch::check_paths(const std::function<Result<>(const Pointer&)>& check) const {
  for (std::size_t index = 0; index < operations_.size(); ++index) {
    const Operation& operation = operations_[index];
    auto checked = check(operation.path);
    if (checked && operation.op == Op::Move) checked = check(operation.from);
    if (!checked) return of_operation(index, checked.error());
  }
  return {};
}

Result<> Patch::apply(Value& document) const {
  for (std::size_t index = 0; index < operations_.size(); ++index) {
    const Operation& operation = operations_[index];
    if (auto done = Step(document, operation.op).run(operation); !done) {
      return of_operation(index, done.error());
    }
  }
  return {};
}

}  // namespace orrery::json
