#include "protocol/keys/partition_key.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "protocol/utf8.h"

namespace orrery {
namespace {

Error malformed(std::string_view what) {
  return Error(
      ErrorCode::BadRequest,
      "The header x-ms-documentdb-partitionkey is malformed: " + std::string(what) +
          ". It is a JSON array with one string, number, boolean, null or {} for each path "
          "of the partition key");
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// For a number that from_chars calls out of range: whether it is too near to zero, and not too
/// large. The place of the first digit that is not zero decides, as no number in between is out of
/// range.
bool is_underflow(std::string_view number) {
  constexpr std::int64_t kExponentMax = 1'000'000'000;
  std::int64_t exponent = 0;
  const std::size_t e = number.find_first_of("eE");
  if (e != std::string_view::npos) {
    const bool negative = number[e + 1] == '-';
    for (char c : number.substr(e + 1)) {
      if (is_digit(c)) exponent = std::min(exponent * 10 + (c - '0'), kExponentMax);
    }
    if (negative) exponent = -exponent;
  }
  const std::string_view digits = number.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  return static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) + exponent < 0;
}

/// A reader of exactly the JSON that the header may hold: it runs on every point read, and a whole
/// JSON parser costs more than the read.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  Result<std::vector<KeyComponent>> read() {
    std::vector<KeyComponent> components;
    skip_space();
    if (!take('[')) return malformed("it does not begin with '['");
    skip_space();
    if (!take(']')) {
      do {
        skip_space();
        ORRERY_TRY(components.emplace_back(), read_component());
        skip_space();
      } while (take(','));
      if (!take(']')) return malformed("expected ',' or ']' after a value");
    }
    skip_space();
    if (at_ != text_.size()) return malformed("something follows the closing ']'");
    return components;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  Result<KeyComponent> read_component() {
    switch (peek()) {
      case '"':
        ++at_;
        return read_string();
      case '{':
        ++at_;
        skip_space();
        if (!take('}')) return malformed("the only object that may stand in it is {}");
        return KeyComponent(Undefined{});
      case '[':
        return malformed("a value is an array");
      case 'n':
        if (take("null")) return KeyComponent(Null{});
        break;
      case 't':
        if (take("true")) return KeyComponent(true);
        break;
      case 'f':
        if (take("false")) return KeyComponent(false);
        break;
      default:
        if (peek() == '-' || is_digit(peek())) return read_number();
    }
    return malformed("a value is missing or not JSON");
  }

  Result<KeyComponent> read_number() {
    const std::size_t begin = at_;
    take('-');
    if (!take('0') && !skip_digits()) return malformed("a number has no digits");
    if (take('.') && !skip_digits()) return malformed("a number ends in its decimal point");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!skip_digits()) return malformed("a number ends in its exponent");
    }
    const std::string_view number = text_.substr(begin, at_ - begin);
    double value = 0;
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc::result_out_of_range) {
      if (!is_underflow(number)) return malformed("a number is too large for a double");
      value = number.starts_with('-') ? -0.0 : 0.0;
    }
    return KeyComponent(value);
  }
  bool skip_digits() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ != begin;
  }

  Result<KeyComponent> read_string() {
    std::string value;
    bool ascii = true;
    for (;;) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') {
        const auto byte = static_cast<unsigned char>(text_[at_]);
        if (byte < 0x20) return malformed("a string has a control character");
        ascii &= byte < 0x80;
        ++at_;
      }
      value.append(text_, begin, at_ - begin);
      if (at_ == text_.size()) return malformed("a string does not end");
      if (text_[at_++] == '"') break;
      ORRERY_TRY(read_escape(value));
    }
    if (!ascii && !is_valid_utf8(value)) return malformed("a string is not UTF-8");
    return KeyComponent(std::move(value));
  }

  Result<> read_escape(std::string& value) {
    const char c = peek();
    if (at_ < text_.size()) ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        value += c;
        return Result<>();
      case 'b':
        value += '\b';
        return Result<>();
      case 'f':
        value += '\f';
        return Result<>();
      case 'n':
        value += '\n';
        return Result<>();
      case 'r':
        value += '\r';
        return Result<>();
      case 't':
        value += '\t';
        return Result<>();
      case 'u':
        break;
      default:
        return malformed("a string has an unknown escape");
    }
    ORRERY_TRY(char32_t unit, read_four_digits());
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      if (!take("\\u")) return malformed("a string has half a surrogate pair");
      ORRERY_TRY(const char32_t low, read_four_digits());
      if (low < 0xDC00 || low > 0xDFFF) return malformed("a string has half a surrogate pair");
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit <= 0xDFFF) {
      return malformed("a string has half a surrogate pair");
    }
    append_utf8(value, unit);
    return Result<>();
  }

  Result<char32_t> read_four_digits() {
    const std::string_view digits = text_.substr(at_, 4);
    std::uint32_t value = 0;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 4 || error != std::errc() || stop != digits.data() + 4) {
      return malformed("a string has a \\u without four hex digits");
    }
    at_ += 4;
    return static_cast<char32_t>(value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void append_unit_escape(std::string& out, char32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[unit >> shift & 0xF];
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c >= 0x20 && c < 0x7F) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
      ++at;
      continue;
    }
    auto [value, size] = decode_utf8(text, at);
    if (size == 0) value = 0xFFFD, size = 1;
    at += size;
    if (value < 0x10000) {
      append_unit_escape(out, value);
    } else {
      append_unit_escape(out, 0xD800 + ((value - 0x10000) >> 10));
      append_unit_escape(out, 0xDC00 + ((value - 0x10000) & 0x3FF));
    }
  }
  out += '"';
}

/// Writes the header form of a component.
struct JsonWriter {
  std::string& out;
  void operator()(Undefined) const { out += "{}"; }
  void operator()(Null) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(double value) const {
    std::array<char, 32> text;  // The shortest text that reads back as the same double; -0 is "-0".
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out.append(text.data(), end);
  }
  void operator()(const std::string& value) const { append_json_string(out, value); }
};

// The canonical form of a key: its components, one after the other.
//
//   undefined  00
//   null       01
//   false      02
//   true       03
//   number     05, then the 8 bytes of the IEEE double, big-endian
//   string     08, then its UTF-8 bytes with 00 written as 00 FF, then 00 01
//
// The tags are those of the hash. A string's end cannot occur inside it and every other component
// has a fixed size, so no component's bytes begin another's: a list of equally many has the same
// property.
struct CanonicalWriter {
  std::string& out;
  void operator()(Undefined) const { out += '\x00'; }
  void operator()(Null) const { out += '\x01'; }
  void operator()(bool value) const { out += value ? '\x03' : '\x02'; }
  void operator()(double value) const {
    out += '\x05';
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift);
  }
  void operator()(std::string_view value) const {
    out += '\x08';
    for (std::size_t zero; (zero = value.find('\0')) != std::string_view::npos;) {
      out.append(value, 0, zero + 1);
      out += '\xFF';
      value.remove_prefix(zero + 1);
    }
    out += value;
    out += '\x00';
    out += '\x01';
  }
};

/// Reads it back.
class CanonicalReader {
 public:
  explicit CanonicalReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  /// Nothing when what comes next is no component.
  std::optional<KeyComponent> read() {
    if (rest_.empty()) return std::nullopt;
    const char tag = rest_.front();
    rest_.remove_prefix(1);
    switch (tag) {
      case '\x00':
        return KeyComponent(Undefined{});
      case '\x01':
        return KeyComponent(Null{});
      case '\x02':
        return KeyComponent(false);
      case '\x03':
        return KeyComponent(true);
      case '\x05':
        return read_number();
      case '\x08':
        return read_string();
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<KeyComponent> read_number() {
    if (rest_.size() < 8) return std::nullopt;
    std::uint64_t bits = 0;
    for (const char byte : rest_.substr(0, 8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    rest_.remove_prefix(8);
    return KeyComponent(std::bit_cast<double>(bits));
  }
  std::optional<KeyComponent> read_string() {
    std::string value;
    for (;;) {
      const auto zero = rest_.find('\0');
      if (zero == std::string_view::npos || zero + 1 == rest_.size()) return std::nullopt;
      const char after = rest_[zero + 1];
      value.append(rest_.substr(0, zero));
      rest_.remove_prefix(zero + 2);
      if (after == '\x01') return KeyComponent(std::move(value));
      if (after != '\xFF') return std::nullopt;
      value.push_back('\0');
    }
  }

  std::string_view rest_;
};

bool same_bytes(const KeyComponent& a, const KeyComponent& b) {
  const double* left = std::get_if<double>(&a);
  const double* right = std::get_if<double>(&b);
  if (left == nullptr || right == nullptr) return a == b;
  return std::bit_cast<std::uint64_t>(*left) == std::bit_cast<std::uint64_t>(*right);
}

}  // namespace

Result<PartitionKey> PartitionKey::parse(std::string_view header) {
  ORRERY_TRY(auto components, HeaderReader(header).read());
  return PartitionKey(std::move(components));
}

std::string PartitionKey::to_json() const {
  std::string out = "[";
  for (const KeyComponent& component : components_) {
    if (out.size() > 1) out += ',';
    std::visit(JsonWriter{out}, component);
  }
  out += ']';
  return out;
}

void PartitionKey::append_canonical(std::string& out) const {
  for (const KeyComponent& component : components_) std::visit(CanonicalWriter{out}, component);
}

Result<PartitionKey> PartitionKey::from_canonical(std::string_view bytes, std::size_t components) {
  CanonicalReader reader(bytes);
  std::vector<KeyComponent> read;
  for (std::size_t i = 0; i < components; ++i) {
    auto component = reader.read();
    if (!component) return Error(ErrorCode::BadRequest, "not the canonical form of a key");
    read.push_back(std::move(*component));
  }
  if (!reader.at_end()) return Error(ErrorCode::BadRequest, "not the canonical form of a key");
  return PartitionKey(std::move(read));
}

bool PartitionKey::operator==(const PartitionKey& other) const {
  return std::ranges::equal(components_, other.components_, same_bytes);
}

Result<std::vector<std::string>> parse_property_path(std::string_view path) {
  const auto bad_path = [&](std::string_view what) {
    return Error(ErrorCode::BadRequest,
                 "The path '" + std::string(path) + "' is not valid: " + std::string(what));
  };
  if (!path.starts_with('/')) return bad_path("it does not begin with '/'");

  std::vector<std::string> names;
  std::size_t at = 0;
  while (at < path.size()) {
    ++at;  // Here stands a '/'.
    std::string& name = names.emplace_back();
    const char quote = at < path.size() ? path[at] : '\0';
    if (quote == '"' || quote == '\'') {
      // Inside quotes everything is itself, but for a quote or a backslash after a backslash.
      bool closed = false;
      for (++at; at < path.size() && !closed; ++at) {
        const bool escaped = path[at] == '\\' && at + 1 < path.size() &&
                             (path[at + 1] == quote || path[at + 1] == '\\');
        if (escaped) {
          name += path[++at];
        } else if (path[at] == quote) {
          closed = true;
        } else {
          name += path[at];
        }
      }
      if (!closed) return bad_path("a quote is not closed");
      if (at < path.size() && path[at] != '/') return bad_path("something follows a closing quote");
    } else {
      const std::size_t end = std::min(path.find('/', at), path.size());
      name = path.substr(at, end - at);
      at = end;
      if (name == "*" || name == "?" || name == "[]") return bad_path("it has a wildcard");
    }
    if (name.empty()) {
      return bad_path(at == path.size() ? "it ends in '/'" : "a segment is empty");
    }
  }
  return names;
}

Result<> check_key_size(const PartitionKey& key) {
  for (const KeyComponent& component : key.components()) {
    const auto* text = std::get_if<std::string>(&component);
    if (text != nullptr && text->size() > kKeyBytesMax) {
      return Error(ErrorCode::BadRequest,
                   "A partition key value has at most " + std::to_string(kKeyBytesMax) +
                       " bytes; this one has " + std::to_string(text->size()));
    }
  }
  return Result<>();
}

}  // namespace orrery
