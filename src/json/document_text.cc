#include "json/document_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/assert.h"
#include "json/scan.h"

namespace orrery::json {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kIdBytesMax = 1023;

// Up to this many names are looked for in a small table; more are sorted.
constexpr std::size_t kHashedNamesMax = 128;

// The system properties in the order of their enumerators, and one more that is only taken out.
constexpr std::array<std::string_view, kSystemPropertyCount + 1> kSystemMembers = {
    "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"};

/// The place of `name` in kSystemMembers, or its size.
std::size_t system_member(std::string_view name) {
  if (name.empty() || name.front() != '_') return kSystemMembers.size();
  return static_cast<std::size_t>(std::ranges::find(kSystemMembers, name) - kSystemMembers.begin());
}

bool is_system_member(std::string_view name) {
  return system_member(name) != kSystemMembers.size();
}

/// An integer of so many digits that it may be beyond 64 bits.
bool is_long_integer(std::string_view number) {
  constexpr std::size_t kDigitsAlwaysFit = 18;
  if (number.front() == '-') number.remove_prefix(1);
  return number.size() > kDigitsAlwaysFit && std::ranges::all_of(number, is_digit);
}

// ── Parsing ──────────────────────────────────────────────────────────────────────────────────────

/// simdjson reads whole blocks, up to SIMDJSON_PADDING bytes past the end, without using what is
/// there.
void reserve_padding(std::string& text) { text.reserve(text.size() + simdjson::SIMDJSON_PADDING); }

simdjson::error_code parse_padded(dom::parser& parser, const std::string& text,
                                  dom::element& root) {
  ORRERY_ASSERT(text.capacity() - text.size() >= simdjson::SIMDJSON_PADDING);
  if (parser.capacity() < text.size() || parser.max_depth() != kParserDepth) {
    const auto error = parser.allocate(std::max(text.size(), kParserBytesMin), kParserDepth);
    if (error) return error;
  }
  return parser.parse(text.data(), text.size(), false).get(root);
}

/// The same text for a parser that takes integers up to 64 bits only: with an exponent they are
/// doubles to it.
std::string with_long_integers_as_doubles(std::string_view text) {
  std::string result;
  std::size_t copied = 0;
  for_each_number(text, [&](std::size_t begin, std::size_t end) {
    if (is_long_integer(text.substr(begin, end - begin))) {
      result.append(text, copied, end - copied).append("e0");
      copied = end;
    }
    return true;
  });
  result.append(text, copied);
  reserve_padding(result);
  return result;
}

bool no_double_holds(std::string_view number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc::result_out_of_range) return false;
  // Out of range is also what is too small, which simdjson rounds to zero as everybody does.
  std::string text = fmt::format("[{}{}]", number, is_long_integer(number) ? "e0" : "");
  reserve_padding(text);
  dom::parser parser;
  dom::element root;
  return parse_padded(parser, text, root) == simdjson::NUMBER_ERROR;
}

/// The error of the first number that is not valid.
Error number_error(std::string_view text) {
  constexpr std::size_t kShownMax = 40;
  Error error = bad_request("The document has a number that is not valid JSON.");
  for_each_number(text, [&](std::size_t begin, std::size_t end) {
    const std::string_view number = text.substr(begin, end - begin);
    const std::string_view shown = number.substr(0, kShownMax);
    const std::string_view dots = number.size() > kShownMax ? "…" : "";
    if (!is_json_number(number)) {
      error = bad_request(
          fmt::format("The document has a number, {}{}, at byte {}, that is not valid JSON.", shown,
                      dots, begin));
      return false;
    }
    if (no_double_holds(number)) {
      error = bad_request(
          fmt::format("The document has a number, {}{}, at byte {}, that no double can hold.",
                      shown, dots, begin));
      return false;
    }
    return true;
  });
  return error;
}

Error nesting_error() {
  return bad_request(fmt::format("The document is nested deeper than {} levels.", kNestingMax));
}

Error parse_error(simdjson::error_code error, std::string_view text) {
  switch (error) {
    case simdjson::NUMBER_ERROR:
    case simdjson::NUMBER_OUT_OF_RANGE:
      return number_error(text);
    case simdjson::DEPTH_ERROR:
      return nesting_error();
    case simdjson::EMPTY:
      return bad_request("The body is empty; it must be a JSON object.");
    case simdjson::UTF8_ERROR:
      return bad_request("The document is not valid UTF-8.");
    case simdjson::STRING_ERROR:
      return bad_request(
          "The document has a string with an escape sequence that is not valid JSON.");
    case simdjson::UNESCAPED_CHARS: {
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '"') continue;
        const std::size_t end = after_string(text, at);
        for (; at < end; ++at) {
          if (static_cast<unsigned char>(text[at]) < 0x20) {
            return bad_request(fmt::format(
                "The document has a control character that is not escaped, at byte {}.", at));
          }
        }
        at = end - 1;
      }
      return bad_request("The document has a control character in a string that is not escaped.");
    }
    case simdjson::UNCLOSED_STRING:
      return bad_request("The document ends within a string: a closing quote is missing.");
    case simdjson::MEMALLOC:
      return Error(ErrorCode::Unavailable, "There is no memory to parse the document.");
    default:
      return bad_request(
          fmt::format("The document is not valid JSON: {}", simdjson::error_message(error)));
  }
}

/// Parses `text`, which must have its padding. The element refers to `parser` only.
Result<dom::element> parse_text(dom::parser& parser, const std::string& text) {
  dom::element root;
  auto error = parse_padded(parser, text, root);
  if (error == simdjson::NUMBER_ERROR || error == simdjson::NUMBER_OUT_OF_RANGE) {
    error = parse_padded(parser, with_long_integers_as_doubles(text), root);
  }
  if (error) return parse_error(error, text);
  return root;
}

// ── What is in a document ────────────────────────────────────────────────────────────────────────

/// Counts leaves, and sees whether anything is nested too deep.
class LeafCounter {
 public:
  /// `level` is the number of objects and arrays around the value.
  std::size_t count(dom::element value, std::size_t level) {
    switch (value.type()) {
      case dom::element_type::ARRAY:
        if (level >= kNestingMax) return too_deep_ = true;
        return count_children(dom::array(value),
                              [&](dom::element child) { return count(child, level + 1); });
      case dom::element_type::OBJECT:
        if (level >= kNestingMax) return too_deep_ = true;
        return count_children(dom::object(value), [&](dom::key_value_pair child) {
          return count(child.value, level + 1);
        });
      default:
        return 1;
    }
  }

  bool too_deep() const { return too_deep_; }

 private:
  template <typename Children, typename Count>
  std::size_t count_children(const Children& children, Count&& count_child) {
    std::size_t leaves = 0;
    for (const auto child : children) leaves += count_child(child);
    return std::max<std::size_t>(leaves, 1);  // Empty ones are leaves themselves.
  }

  bool too_deep_ = false;
};

double number_of(dom::element value) {
  switch (value.type()) {
    case dom::element_type::INT64:
      return static_cast<double>(std::int64_t(value));
    case dom::element_type::UINT64:
      return static_cast<double>(std::uint64_t(value));
    default:
      return double(value);
  }
}

Scalar scalar_of(dom::element value) {
  switch (value.type()) {
    case dom::element_type::NULL_VALUE:
      return NullValue{};
    case dom::element_type::BOOL:
      return bool(value);
    case dom::element_type::STRING:
      return std::string(std::string_view(value));
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
      return number_of(value);
    default:
      return std::monostate{};
  }
}

Scalar scalar_at(dom::element value, std::span<const std::string> path) {
  if (!path.empty() && is_system_member(path.front())) return std::monostate{};
  for (const std::string& name : path) {
    if (value.type() != dom::element_type::OBJECT) return std::monostate{};
    if (dom::object(value).at_key(name).get(value)) return std::monostate{};
  }
  return scalar_of(value);
}

/// Whether the number at `path` is written -0. The DOM has only 0 for it, but as a partition key
/// they are two.
bool is_minus_zero_at(const std::string& text, std::span<const std::string> path) {
  thread_local simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  if (parser.iterate(text.data(), text.size(), text.capacity()).get(document)) return false;
  simdjson::ondemand::object object;
  if (document.get_object().get(object)) return false;
  simdjson::ondemand::value value;
  for (std::size_t level = 0; level < path.size(); ++level) {
    if (level > 0 && value.get_object().get(object)) return false;
    if (object.find_field_unordered(path[level]).get(value)) return false;
  }
  const std::string_view token = value.raw_json_token();
  return token.starts_with("-0");
}

TtlMember ttl_of(dom::element value) {
  const TtlMember invalid{TtlMember::Kind::Invalid, 0};
  if (!value.is_number()) return invalid;
  const double seconds = number_of(value);
  if (seconds != std::trunc(seconds)) return invalid;
  if (seconds != -1 && (seconds < 1 || seconds > std::numeric_limits<std::int32_t>::max())) {
    return invalid;
  }
  return {TtlMember::Kind::Valid, static_cast<std::int32_t>(seconds)};
}

template <typename Word>
std::uint64_t both_ends(std::string_view name) {
  Word first;
  Word last;
  std::memcpy(&first, name.data(), sizeof(Word));
  std::memcpy(&last, name.data() + name.size() - sizeof(Word), sizeof(Word));
  return first ^ std::rotl<std::uint64_t>(last, 29);
}

/// Of the length and both ends: most names of one object differ in one of them.
std::size_t name_hash(std::string_view name) {
  std::uint64_t ends = 0;
  if (name.size() >= 8) {
    ends = both_ends<std::uint64_t>(name);
  } else if (name.size() >= 4) {
    ends = both_ends<std::uint32_t>(name);
  } else if (!name.empty()) {
    ends = both_ends<std::uint8_t>(name) ^
           (std::uint64_t{static_cast<std::uint8_t>(name[name.size() / 2])} << 8);
  }
  return ((ends ^ name.size()) * 0x9E3779B97F4A7C15u) >> 40;
}

/// The name that is there twice, if there is one. May sort `names`.
std::optional<std::string_view> find_duplicate(std::span<std::string_view> names) {
  if (names.size() > kHashedNamesMax) {
    std::ranges::sort(names, [](std::string_view a, std::string_view b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    const auto at = std::ranges::adjacent_find(names);
    if (at == names.end()) return std::nullopt;
    return *at;
  }
  // An open table of places in `names`, one up; no more than half full. Somebody who makes all
  // names collide gains kHashedNamesMax²/2 comparisons.
  std::array<std::uint8_t, 2 * kHashedNamesMax> slots;
  const std::size_t slot_count = std::bit_ceil(2 * names.size());
  std::fill_n(slots.begin(), slot_count, std::uint8_t{0});
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t slot = name_hash(names[i]);; ++slot) {
      std::uint8_t& place = slots[slot & (slot_count - 1)];
      if (place == 0) {
        place = static_cast<std::uint8_t>(i + 1);
        break;
      }
      if (names[place - 1u] == names[i]) return names[i];
    }
  }
  return std::nullopt;
}

// ── Taking members out ───────────────────────────────────────────────────────────────────────────

/// The top-level members that are to be taken out of a text, from left to right. There are no more
/// than there are names: a document that has one twice is refused before they are taken out.
class RemovedMembers {
 public:
  /// The member at `index`, whose name is kSystemMembers[name].
  void add(std::size_t index, std::size_t name) {
    if (count_ < members_.size()) members_[count_++] = {index, name};
  }
  bool empty() const { return count_ == 0; }
  /// Which name the member at `index` has, if it is to go. Asked for with rising indexes.
  std::optional<std::size_t> take(std::size_t index) {
    if (taken_ == count_ || members_[taken_].index != index) return std::nullopt;
    return members_[taken_++].name;
  }

 private:
  struct Member {
    std::size_t index;
    std::size_t name;
  };
  std::array<Member, kSystemMembers.size()> members_;
  std::size_t count_ = 0;
  std::size_t taken_ = 0;
};

/// Takes `removed` out of `text`, each member with the white space around it and one comma, and
/// says where system properties were. `text` is a valid object without its closing brace.
SystemPlaces remove_members(std::string& text, RemovedMembers removed) {
  SystemPlaces places;
  std::size_t kept = 1;
  std::size_t member = 0;
  std::size_t begin = 1;
  const auto end_member = [&](std::size_t end) {
    if (const auto name = removed.take(member++)) {
      if (*name < kSystemPropertyCount) {
        places.add({static_cast<std::uint32_t>(kept), static_cast<SystemProperty>(*name)});
      }
    } else {
      if (kept > 1) text[kept++] = ',';  // At least one comma was read since: kept <= begin.
      std::memmove(text.data() + kept, text.data() + begin, end - begin);
      kept += end - begin;
    }
    begin = end + 1;
  };
  std::size_t level = 0;
  for (std::size_t at = 1; at < text.size();) {
    switch (text[at]) {
      case '"':
        at = after_string(text, at);
        continue;
      case '{':
      case '[':
        ++level;
        break;
      case '}':
      case ']':
        --level;
        break;
      case ',':
        if (level == 0) end_member(at);
        break;
      default:
        break;
    }
    ++at;
  }
  end_member(text.size());
  text.resize(kept);
  return places;
}

void trim_end(std::string& text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
}

void visit_leaves(dom::element value, std::vector<std::string_view>& path,
                  const std::function<void(std::span<const std::string_view>)>& visit) {
  bool is_leaf = true;
  const auto visit_child = [&](std::string_view name, dom::element child) {
    is_leaf = false;
    path.push_back(name);
    visit_leaves(child, path, visit);
    path.pop_back();
  };
  if (value.type() == dom::element_type::OBJECT) {
    for (const auto member : dom::object(value)) visit_child(member.key, member.value);
  } else if (value.type() == dom::element_type::ARRAY) {
    for (const auto element : dom::array(value)) visit_child("[]", element);
  }
  if (is_leaf) visit(path);
}

// ── Putting them in ──────────────────────────────────────────────────────────────────────────────

void append_system_property(std::string& text, SystemProperty property,
                            const SystemProperties& values) {
  if (text.size() > 1) text += ',';
  text += '"';
  text += kSystemMembers[static_cast<std::size_t>(property)];
  text += "\":";
  switch (property) {
    case SystemProperty::Rid:
      append_quoted(text, values.rid);
      return;
    case SystemProperty::Self:
      append_quoted(text, values.self);
      return;
    case SystemProperty::ETag:
      append_quoted(text, values.etag);
      return;
    case SystemProperty::Attachments:
      text += R"("attachments/")";
      return;
    case SystemProperty::Ts: {
      std::array<char, 20> digits;
      const auto [end, error] =
          std::to_chars(digits.data(), digits.data() + digits.size(), values.ts);
      text.append(digits.data(), end);
      return;
    }
  }
}

}  // namespace

Result<DocumentText> DocumentText::parse(std::string_view body,
                                         std::span<const MemberPath> wanted) {
  if (body.starts_with("\xEF\xBB\xBF")) {
    return bad_request("The document begins with a byte order mark; it must be plain UTF-8.");
  }
  // The one copy: it is parsed where it will stay.
  DocumentText document;
  std::string& text = document.open_text_;
  text.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  text = body;

  thread_local dom::parser kept_parser;
  thread_local std::vector<std::string_view> names;
  std::optional<dom::parser> own_parser;
  if (body.size() > kKeptParserBytesMax) own_parser.emplace();
  dom::parser& parser = own_parser ? *own_parser : kept_parser;

  ORRERY_TRY(const dom::element root, parse_text(parser, text));
  if (root.type() != dom::element_type::OBJECT) {
    return bad_request("The body is not a JSON object.");
  }

  LeafCounter leaves;
  RemovedMembers removed;
  names.clear();
  for (const auto member : dom::object(root)) {
    const std::size_t count = leaves.count(member.value, 1);
    if (const std::size_t name = system_member(member.key); name < kSystemMembers.size()) {
      removed.add(names.size(), name);
    } else {
      document.leaf_count_ += count;
      if (member.key == "id") {
        document.id_ = member.value.is_string() ? scalar_of(member.value) : NullValue{};
      } else if (member.key == "ttl") {
        document.ttl_ = ttl_of(member.value);
      }
    }
    names.push_back(member.key);
  }
  if (leaves.too_deep()) return nesting_error();
  if (const auto name = find_duplicate(names)) {
    return bad_request(fmt::format("The document has the member '{}' twice.", *name));
  }
  document.wanted_.reserve(wanted.size());
  for (const MemberPath& path : wanted) {
    Scalar& found = document.wanted_.emplace_back(scalar_at(root, path));
    const auto* number = std::get_if<double>(&found);
    if (number != nullptr && *number == 0 && text.contains("-0") && is_minus_zero_at(text, path)) {
      found = -0.0;
    }
  }
  if (own_parser) names = {};

  trim_end(text);
  text.pop_back();
  if (const std::size_t begin = text.find('{'); begin > 0) text.erase(0, begin);
  if (!removed.empty()) document.system_places_ = remove_members(text, removed);
  trim_end(text);
  // White space that a removed member followed is gone too.
  document.system_places_.clamp(static_cast<std::uint32_t>(text.size()));
  return document;
}

Result<std::string> DocumentText::id() const {
  if (std::holds_alternative<std::monostate>(id_)) {
    return bad_request(
        "The input content is invalid because the required properties - 'id; ' - are missing");
  }
  const auto* id = std::get_if<std::string>(&id_);
  if (id == nullptr) return bad_request("The member 'id' must be a string.");
  if (id->empty()) return bad_request("The member 'id' must not be empty.");
  if (id->size() > kIdBytesMax) {
    return bad_request(fmt::format("The member 'id' must not be longer than {} bytes; it has {}.",
                                   kIdBytesMax, id->size()));
  }
  if (id->find('\\') != std::string::npos) {
    return bad_request("The member 'id' must not contain a backslash.");
  }
  return *id;
}

void DocumentText::for_each_leaf(
    const std::function<void(std::span<const std::string_view>)>& visit) const {
  if (!has_members()) return;
  std::string text = open_text_ + '}';
  reserve_padding(text);
  // Not the thread's parser: `visit` may parse, and would pull the names from under the walk.
  dom::parser parser;
  const auto root = parse_text(parser, text);
  ORRERY_ASSERT(root.has_value());
  std::vector<std::string_view> path;
  visit_leaves(*root, path, visit);
}

std::string with_system_properties(std::string_view open_text, const SystemProperties& properties,
                                   const SystemPlaces& places) {
  // The names, punctuation and the escaped quotes of the etag, and 20 digits.
  constexpr std::size_t kRoom = 96;
  std::string text;
  text.reserve(open_text.size() + properties.rid.size() + properties.self.size() +
               properties.etag.size() + kRoom);
  std::array<bool, kSystemPropertyCount> has_place{};
  std::size_t copied = 0;
  const auto copy_until = [&](std::size_t end) {
    // The text after a member begins with its comma; the first member has none before it.
    if (copied == 1 && end > 1) text += ',';
    text += open_text.substr(copied, end - copied);
    copied = end;
  };
  for (const SystemPlaces::Place& place : places.list()) {
    copy_until(place.offset);
    append_system_property(text, place.property, properties);
    has_place[static_cast<std::size_t>(place.property)] = true;
  }
  copy_until(open_text.size());
  for (std::size_t i = 0; i < kSystemPropertyCount; ++i) {
    if (!has_place[i]) append_system_property(text, static_cast<SystemProperty>(i), properties);
  }
  text += '}';
  return text;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, copied, at - copied);
    copied = at + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        break;
    }
  }
  out.append(text, copied);
  out += '"';
}

}  // namespace orrery::json
