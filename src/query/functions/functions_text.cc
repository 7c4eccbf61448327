// Functions of strings.
#include <algorithm>
#include <cmath>
#include <optional>

#include "protocol/utf8.h"
#include "query/eval/evaluate.h"
#include "query/functions/arguments.h"
#include "query/functions/find.h"
#include "query/functions/functions.h"
#include "query/functions/letters.h"

namespace orrery::query {
namespace {

using json::Number;
using json::Reader;
using json::Value;

constexpr std::size_t kReplicatedMax = 10'000;

Value counted_letters(std::size_t count) { return Value::number(static_cast<std::int64_t>(count)); }

// ── Looking for one in another ───────────────────────────────────────────────────────────────────

bool text_contains(std::string_view text, std::string_view part) {
  return find_in(text, part) != std::string_view::npos;
}
bool starts_with(std::string_view text, std::string_view part) { return text.starts_with(part); }
bool ends_with(std::string_view text, std::string_view part) { return text.ends_with(part); }
bool is_equal(std::string_view text, std::string_view part) { return text == part; }

/// (text, part [, ignoring case])
template <bool (*test)(std::string_view, std::string_view)>
Value tested(Arguments arguments) {
  const Texts texts(arguments, 2);
  if (!texts) return {};
  if (arguments.size() == 3) {
    if (!arguments[2]->is_boolean()) return {};
    if (arguments[2]->as_boolean()) {
      return Value::boolean(test(to_upper(texts[0]), to_upper(texts[1])));
    }
  }
  return Value::boolean(test(texts[0], texts[1]));
}

/// One part that decides wins over one that is no string.
template <bool decisive, bool ignoring_case>
Value text_contains_several(Arguments arguments) {
  std::string buffer;
  if (!arguments[0]->is_string()) return {};
  std::string_view text = arguments[0]->as_string(buffer);
  std::string upper;
  if (ignoring_case) text = upper = to_upper(text);
  bool any_undefined = false;
  std::string part_buffer;
  for (const Value* part : arguments.subspan(1)) {
    if (!part->is_string()) {
      any_undefined = true;
      continue;
    }
    if (!arguments.spend(1 + WorkBudget::steps_of(text.size()))) return {};
    const std::string_view plain = part->as_string(part_buffer);
    if (text_contains(text, ignoring_case ? to_upper(plain) : std::string(plain)) == decisive) {
      return Value::boolean(decisive);
    }
  }
  return any_undefined ? Value() : Value::boolean(!decisive);
}

Value index_of(Arguments arguments) {
  const Texts texts(arguments, 2);
  if (!texts) return {};
  std::size_t from = 0;
  if (arguments.size() == 3) {
    const auto start = integer_of(*arguments[2]);
    if (!start || *start < 0) return {};
    const auto unit = static_cast<std::size_t>(*start);
    if (unit > utf16_length(texts[0])) return Value::number(std::int64_t{-1});
    from = utf16_offset(texts[0], unit);
  }
  const std::size_t found = find_in(texts[0], texts[1], from);
  if (found == std::string_view::npos) return Value::number(std::int64_t{-1});
  return counted_letters(utf16_length(texts[0].substr(0, found)));
}

Value last_index_of(Arguments arguments) {
  const Texts texts(arguments, 2);
  if (!texts) return {};
  std::string_view text = texts[0];
  if (arguments.size() == 3) {
    const auto start = integer_of(*arguments[2]);
    if (!start) return {};
    if (*start < 0) return Value::number(std::int64_t{-1});
    // A match ends with the character at `start` at the latest.
    text = text.substr(0, utf16_offset(text, static_cast<std::size_t>(*start) + 1));
  }
  const std::size_t found = find_last_in(text, texts[1]);
  if (found == std::string_view::npos) return Value::number(std::int64_t{-1});
  return counted_letters(utf16_length(text.substr(0, found)));
}

template <bool last, bool before>
Value part_beside(Arguments arguments) {
  const Texts texts(arguments, 2);
  if (!texts) return {};
  const std::size_t found = last ? find_last_in(texts[0], texts[1]) : find_in(texts[0], texts[1]);
  if (found == std::string_view::npos) return {};
  return made(before ? texts[0].substr(0, found) : texts[0].substr(found + texts[1].size()));
}

// ── Parts ────────────────────────────────────────────────────────────────────────────────────────

Value left(Arguments arguments) {
  const Texts texts(arguments, 1);
  const auto count = integer_of(*arguments[1]);
  if (!texts || !count) return {};
  if (*count <= 0) return made("");
  return made(texts[0].substr(0, utf16_offset(texts[0], static_cast<std::size_t>(*count))));
}

Value right(Arguments arguments) {
  const Texts texts(arguments, 1);
  const auto count = integer_of(*arguments[1]);
  if (!texts || !count) return {};
  if (*count <= 0) return made("");
  const std::size_t length = utf16_length(texts[0]);
  const auto wanted = static_cast<std::size_t>(*count);
  if (wanted >= length) return made(texts[0]);
  return made(texts[0].substr(utf16_offset(texts[0], length - wanted)));
}

Value substring(Arguments arguments) {
  const Texts texts(arguments, 1);
  const auto start = integer_of(*arguments[1]);
  const auto length = integer_of(*arguments[2]);
  if (!texts || !start || !length) return {};
  if (*start < 0 || *length <= 0) return made("");
  const std::string_view rest =
      texts[0].substr(utf16_offset(texts[0], static_cast<std::size_t>(*start)));
  return made(rest.substr(0, utf16_offset(rest, static_cast<std::size_t>(*length))));
}

/// The characters that are trimmed: those of a text, or white space.
class TrimSet {
 public:
  explicit TrimSet(std::optional<std::string_view> characters) : is_white_(!characters) {
    if (!characters) return;
    for (std::size_t at = 0; at < characters->size();) {
      const auto [value, size] = decode_utf8(*characters, at);
      characters_.push_back(value);
      at += std::max<std::size_t>(size, 1);
    }
    std::ranges::sort(characters_);
  }
  bool has(char32_t character) const {
    return is_white_ ? is_white_space(character)
                     : std::ranges::binary_search(characters_, character);
  }

 private:
  bool is_white_;
  std::vector<char32_t> characters_;
};

template <bool at_begin, bool at_end>
Value trimmed(Arguments arguments) {
  const Texts texts(arguments, arguments.size());
  if (!texts) return {};
  std::string_view text = texts[0];
  const TrimSet set(arguments.size() == 2 ? std::optional(texts[1]) : std::nullopt);
  while (at_begin && !text.empty()) {
    const auto [value, size] = decode_utf8(text, 0);
    if (size == 0 || !set.has(value)) break;
    text.remove_prefix(size);
  }
  while (at_end && !text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    const auto [value, size] = decode_utf8(text, last);
    if (size == 0 || !set.has(value)) break;
    text.remove_suffix(text.size() - last);
  }
  return made(text);
}

// ── Making others ────────────────────────────────────────────────────────────────────────────────

Value concat(Arguments arguments) {
  std::string joined;
  std::string buffer;
  for (const Value* part : arguments) {
    if (!part->is_string()) return {};
    joined += part->as_string(buffer);
    if (joined.size() > kMadeBytesMax) return {};
  }
  return Value::string(std::move(joined));
}

Value length(Arguments arguments) {
  const Texts texts(arguments, 1);
  return texts ? counted_letters(utf16_length(texts[0])) : Value();
}

Value lower(Arguments arguments) {
  const Texts texts(arguments, 1);
  return texts ? Value::string(to_lower(texts[0])) : Value();
}

Value upper(Arguments arguments) {
  const Texts texts(arguments, 1);
  return texts ? Value::string(to_upper(texts[0])) : Value();
}

Value reverse(Arguments arguments) {
  const Texts texts(arguments, 1);
  if (!texts) return {};
  const std::string_view text = texts[0];
  std::string reversed(text.size(), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = std::max<std::size_t>(decode_utf8(text, at).size, 1);
    text.copy(reversed.data() + text.size() - at - size, size, at);
    at += size;
  }
  return Value::string(std::move(reversed));
}

Value replace(Arguments arguments) {
  const Texts texts(arguments, 3);
  if (!texts) return {};
  if (texts[1].empty()) return made(texts[0]);
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = 0; (at = find_in(texts[0], texts[1], copied)) != std::string_view::npos;) {
    out.append(texts[0], copied, at - copied).append(texts[2]);
    copied = at + texts[1].size();
    if (out.size() > kMadeBytesMax) return {};
  }
  out.append(texts[0], copied);
  return Value::string(std::move(out));
}

Value replicate(Arguments arguments) {
  const Texts texts(arguments, 1);
  if (!texts || !arguments[1]->is_number()) return {};
  const double count = std::trunc(arguments[1]->as_number().real);
  if (!(count >= 0) || !std::isfinite(count)) return {};
  if (count * static_cast<double>(utf16_length(texts[0])) > kReplicatedMax) return {};
  std::string out;
  if (texts[0].empty()) return Value::string(std::move(out));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) out += texts[0];
  return Value::string(std::move(out));
}

Value string_join(Arguments arguments) {
  if (!arguments[0]->is_array() || !arguments[1]->is_string()) return {};
  std::string separator_buffer;
  const std::string_view separator = arguments[1]->as_string(separator_buffer);
  std::string out;
  std::string buffer;
  bool is_first = true;
  for (Reader reader(*arguments[0]); reader.next();) {
    const Value element = reader.value();
    if (!element.is_string()) return {};
    if (!std::exchange(is_first, false)) out += separator;
    out += element.as_string(buffer);
    if (out.size() > kMadeBytesMax) return {};
  }
  return Value::string(std::move(out));
}

Value string_split(Arguments arguments) {
  const Texts texts(arguments, 2);
  if (!texts) return {};
  std::vector<Value> parts;
  std::size_t begin = 0;
  std::size_t bytes = 0;
  while (!texts[1].empty()) {
    const std::size_t at = find_in(texts[0], texts[1], begin);
    if (at == std::string_view::npos) break;
    bytes += sizeof(Value) + at - begin;
    if (bytes > kMadeBytesMax || !arguments.spend(1)) return {};
    parts.push_back(made(texts[0].substr(begin, at - begin)));
    begin = at + texts[1].size();
  }
  parts.push_back(made(texts[0].substr(begin)));
  return Value::array(std::move(parts));
}

// ── From and to JSON ─────────────────────────────────────────────────────────────────────────────

template <json::Kind kind>
Value string_to(Arguments arguments) {
  const Texts texts(arguments, 1);
  if (!texts) return {};
  auto value = Value::parse(texts[0]);
  if (!value || value->kind() != kind) return {};
  value->own();
  return std::move(*value);
}

/// Without spaces, and numbers as we print them.
void append_compact(std::string& out, const Value& value) {
  if (value.is_number()) {
    Value::number(value.as_number()).append_to(out);
  } else if (value.is_array() || value.is_object()) {
    bool is_first = true;
    out += value.is_array() ? '[' : '{';
    for (Reader reader(value); reader.next();) {
      if (!std::exchange(is_first, false)) out += ',';
      if (value.is_object()) {
        reader.name().append_to(out);
        out += ':';
      }
      append_compact(out, reader.value());
    }
    out += value.is_array() ? ']' : '}';
  } else {
    value.append_to(out);
  }
}

Value to_string(Arguments arguments) {
  const Value& value = *arguments[0];
  std::string text;
  if (value.is_string()) return made(value.as_string(text));
  if (value.is_number()) {
    const double number = value.as_number().real;
    if (std::isnan(number)) return made("NaN");
    if (std::isinf(number)) return made(number > 0 ? "Infinity" : "-Infinity");
  }
  append_compact(text, value);
  return Value::string(std::move(text));
}

constexpr Function kTextFunctions[] = {
    {"CONCAT", 2, kAnyNumber, concat},
    {"CONTAINS", 2, 3, tested<text_contains>},
    {"CONTAINS_ALL_CI", 2, kAnyNumber, text_contains_several<false, true>, true},
    {"CONTAINS_ALL_CS", 2, kAnyNumber, text_contains_several<false, false>, true},
    {"CONTAINS_ANY_CI", 2, kAnyNumber, text_contains_several<true, true>, true},
    {"CONTAINS_ANY_CS", 2, kAnyNumber, text_contains_several<true, false>, true},
    {"ENDSWITH", 2, 3, tested<ends_with>},
    {"INDEX_OF", 2, 3, index_of},
    {"LASTINDEXOF", 2, 3, last_index_of},
    {"LASTSUBSTRINGAFTER", 2, 2, part_beside<true, false>},
    {"LASTSUBSTRINGBEFORE", 2, 2, part_beside<true, true>},
    {"LEFT", 2, 2, left},
    {"LENGTH", 1, 1, length},
    {"LOWER", 1, 1, lower},
    {"LTRIM", 1, 2, trimmed<true, false>},
    {"REPLACE", 3, 3, replace},
    {"REPLICATE", 2, 2, replicate},
    {"REVERSE", 1, 1, reverse},
    {"RIGHT", 2, 2, right},
    {"RTRIM", 1, 2, trimmed<false, true>},
    {"STARTSWITH", 2, 3, tested<starts_with>},
    {"STRINGEQUALS", 2, 3, tested<is_equal>},
    {"STRINGJOIN", 2, 2, string_join},
    {"STRINGSPLIT", 2, 2, string_split},
    {"STRINGTOARRAY", 1, 1, string_to<json::Kind::Array>},
    {"STRINGTOBOOLEAN", 1, 1, string_to<json::Kind::Boolean>},
    {"STRINGTONULL", 1, 1, string_to<json::Kind::Null>},
    {"STRINGTONUMBER", 1, 1, string_to<json::Kind::Number>},
    {"STRINGTOOBJECT", 1, 1, string_to<json::Kind::Object>},
    {"SUBSTRING", 3, 3, substring},
    {"SUBSTRINGAFTER", 2, 2, part_beside<false, false>},
    {"SUBSTRINGBEFORE", 2, 2, part_beside<false, true>},
    {"TOSTRING", 1, 1, to_string},
    {"TRIM", 1, 2, trimmed<true, true>},
    {"UPPER", 1, 1, upper},
};

}  // namespace

std::span<const Function> text_functions() { return kTextFunctions; }

}  // namespace orrery::query
