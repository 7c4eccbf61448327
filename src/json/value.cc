#include "json/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "json/document_text.h"

namespace orrery::json {

struct Value::Owned {
  std::string text;  ///< of a string: its characters, or its JSON text; of all else JSON text
  std::vector<Value> elements;
  std::vector<Member> members;
};

namespace {

Kind kind_of(char first) {
  switch (first) {
    case '{':
      return Kind::Object;
    case '[':
      return Kind::Array;
    case '"':
      return Kind::String;
    case 't':
    case 'f':
      return Kind::Boolean;
    case 'n':
      return Kind::Null;
    default:
      return is_digit(first) || first == '-' ? Kind::Number : Kind::Undefined;
  }
}

/// The four hexadecimal digits at `at`; nothing if they are not there.
std::optional<char32_t> hex4(std::string_view text, std::size_t at) {
  if (text.size() < at + 4) return std::nullopt;
  unsigned value = 0;
  const char* begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + 4, value, 16);
  if (error != std::errc() || end != begin + 4) return std::nullopt;
  return static_cast<char32_t>(value);
}

void append_code_point(std::string& out, char32_t value) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6), put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12), put(0x80 | (value >> 6 & 0x3F)), put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18), put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F)), put(0x80 | (value & 0x3F));
  }
}

/// Appends what the escape whose backslash is at `at` stands for; the position after it.
std::size_t append_escape(std::string& out, std::string_view text, std::size_t at) {
  constexpr char32_t kReplacement = 0xFFFD;
  if (at + 1 >= text.size()) return text.size();
  switch (const char c = text[at + 1]) {
    case 'b':
      out += '\b';
      return at + 2;
    case 'f':
      out += '\f';
      return at + 2;
    case 'n':
      out += '\n';
      return at + 2;
    case 'r':
      out += '\r';
      return at + 2;
    case 't':
      out += '\t';
      return at + 2;
    case 'u':
      break;
    default:
      out += c;
      return at + 2;
  }
  const auto unit = hex4(text, at + 2);
  if (!unit) return at + 2;
  at += 6;
  if (*unit < 0xD800 || *unit > 0xDFFF) {
    append_code_point(out, *unit);
    return at;
  }
  const bool is_pair = *unit < 0xDC00 && text.substr(std::min(at, text.size())).starts_with("\\u");
  const auto low = is_pair ? hex4(text, at + 2) : std::nullopt;
  if (!low || *low < 0xDC00 || *low > 0xDFFF) {
    append_code_point(out, kReplacement);
    return at;
  }
  append_code_point(out, 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00));
  return at + 6;
}

}  // namespace

// ── Scalars ──────────────────────────────────────────────────────────────────────────────────────

Number Number::parse(std::string_view token) {
  const char* begin = token.data();
  const char* end = begin + token.size();
  std::int64_t integer = 0;
  const auto [integer_end, integer_error] = std::from_chars(begin, end, integer);
  // Minus zero is a double: it divides otherwise than zero.
  if (integer_end == end && integer_error == std::errc() && !(integer == 0 && token[0] == '-')) {
    return of(integer);
  }
  double real = 0;
  const auto [real_end, error] = std::from_chars(begin, end, real);
  if (error == std::errc::result_out_of_range) {
    return of(std::strtod(std::string(token).c_str(), nullptr));
  }
  return of(real);
}

void append_number(std::string& out, Number number) {
  if (number.is_integer) {
    fmt::format_to(std::back_inserter(out), "{}", number.integer);
    return;
  }
  if (number.real == 0) {
    out += '0';
    return;
  }
  constexpr int kFixedDigitsMax = 15;
  constexpr int kFixedExponentMin = -4;
  std::array<char, 32> text;
  char* const end = text.data() + text.size();
  const auto written = std::to_chars(text.data(), end, number.real, std::chars_format::scientific);
  const std::string_view scientific(text.data(), written.ptr);
  const std::size_t e = scientific.find('e');
  const auto digits = static_cast<int>(
      std::ranges::count_if(scientific.substr(0, e), [](char c) { return c >= '0' && c <= '9'; }));
  int exponent = 0;
  std::from_chars(scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1), written.ptr,
                  exponent);
  if (exponent < kFixedExponentMin || exponent >= std::max(kFixedDigitsMax, digits)) {
    out += scientific;
    return;
  }
  const auto fixed = std::to_chars(text.data(), end, number.real, std::chars_format::fixed);
  out.append(text.data(), fixed.ptr);
}

std::string_view unquoted(std::string_view quoted, std::string& buffer) {
  if (quoted.starts_with('"')) quoted.remove_prefix(1);
  if (quoted.ends_with('"')) quoted.remove_suffix(1);
  std::size_t at = quoted.find('\\');
  if (at == std::string_view::npos) return quoted;
  buffer.clear();
  std::size_t copied = 0;
  while (at < quoted.size()) {
    buffer.append(quoted, copied, at - copied);
    copied = append_escape(buffer, quoted, at);
    at = std::min(quoted.find('\\', copied), quoted.size());
  }
  if (copied < quoted.size()) buffer.append(quoted, copied);
  return buffer;
}

// ── Making ───────────────────────────────────────────────────────────────────────────────────────

void Value::Deleter::operator()(Owned* owned) const { delete owned; }

Value::Owned& Value::fresh() {
  owned_.reset(new Owned);
  return *owned_;
}

Value::Value(const Value& other)
    : kind_(other.kind_),
      is_text_(other.is_text_),
      number_(other.number_),
      text_(other.text_),
      tree_(other.tree_) {
  if (!other.owned_) return;
  owned_.reset(new Owned(*other.owned_));
  if (tree_ != nullptr) {
    tree_ = owned_.get();
  } else {
    text_ = owned_->text;
  }
}

Value& Value::operator=(const Value& other) {
  if (this != &other) *this = Value(other);
  return *this;
}

Value Value::boolean(bool value) {
  Value result(Kind::Boolean);
  result.number_.integer = value ? 1 : 0;
  return result;
}

Value Value::number(Number value) {
  Value result(Kind::Number);
  result.number_ = value;
  return result;
}

Value Value::string(std::string text) {
  Value result(Kind::String);
  result.fresh().text = std::move(text);
  result.text_ = result.owned_->text;
  return result;
}

Value Value::string_at(std::string_view text) {
  Value result(Kind::String);
  result.text_ = text;
  return result;
}

Value Value::array(std::vector<Value> elements) {
  Value result(Kind::Array);
  result.fresh().elements = std::move(elements);
  result.tree_ = result.owned_.get();
  return result;
}

Value Value::object(std::vector<Member> members) {
  Value result(Kind::Object);
  result.fresh().members = std::move(members);
  result.tree_ = result.owned_.get();
  return result;
}

Value Value::object() { return object(std::vector<Member>()); }

Value Value::of_checked(std::string_view text) {
  const std::size_t begin = after_spaces(text, 0);
  if (begin == text.size()) return {};
  Value result(kind_of(text[begin]));
  switch (result.kind_) {
    case Kind::Undefined:
    case Kind::Null:
      break;
    case Kind::Boolean:
      result.number_.integer = text[begin] == 't' ? 1 : 0;
      break;
    default:
      text.remove_prefix(begin);
      while (is_space(text.back())) text.remove_suffix(1);
      result.text_ = text;
      result.is_text_ = true;
      break;
  }
  return result;
}

Value Value::referring_to(const Value& other) {
  Value result(other.kind_);
  result.is_text_ = other.is_text_;
  result.number_ = other.number_;
  result.text_ = other.text_;
  result.tree_ = other.tree_;
  return result;
}

void Value::own() {
  switch (kind_) {
    case Kind::Undefined:
    case Kind::Null:
    case Kind::Boolean:
      return;
    case Kind::Number:
    case Kind::String:
      if (kind_ == Kind::Number && !is_text_) return;
      break;
    case Kind::Array:
    case Kind::Object:
      if (tree_ == nullptr) break;
      if (!owned_) {
        owned_.reset(new Owned(*tree_));
        tree_ = owned_.get();
      }
      for (Value& element : owned_->elements) element.own();
      for (Member& member : owned_->members) {
        member.name.own();
        member.value.own();
      }
      return;
  }
  if (owned_) return;
  fresh().text = text_;
  text_ = owned_->text;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────

Number Value::as_number() const { return is_text_ ? Number::parse(text_) : number_; }

std::string_view Value::as_string(std::string& buffer) const {
  return is_text_ ? unquoted(text_, buffer) : text_;
}

std::string Value::string_or_empty() const {
  std::string buffer;
  return is_string() ? std::string(as_string(buffer)) : std::string();
}

bool Value::is_string(std::string_view text) const {
  if (kind_ != Kind::String) return false;
  if (!is_text_) return text_ == text;
  std::string buffer;
  return unquoted(text_, buffer) == text;
}

Value Value::member(std::string_view name) const& {
  if (kind_ != Kind::Object) return {};
  if (is_text_) {
    std::string buffer;
    for (Walk walk(text_, 0); walk.next();) {
      if (walk.plain_name(buffer) == name) return of_checked(walk.value());
    }
    return {};
  }
  for (const Member& member : tree_->members) {
    if (member.name.is_string(name)) return referring_to(member.value);
  }
  return {};
}

Value Value::member(std::string_view name) && {
  Value result = std::as_const(*this).member(name);
  if (owned_) result.own();
  return result;
}

Value Value::element(std::size_t index) const& {
  if (kind_ != Kind::Array) return {};
  if (is_text_) {
    Walk walk(text_, 0);
    for (std::size_t at = 0; walk.next(); ++at) {
      if (at == index) return of_checked(walk.value());
    }
    return {};
  }
  return index < tree_->elements.size() ? referring_to(tree_->elements[index]) : Value();
}

Value Value::element(std::size_t index) && {
  Value result = std::as_const(*this).element(index);
  if (owned_) result.own();
  return result;
}

std::size_t Value::size() const {
  if (kind_ != Kind::Object && kind_ != Kind::Array) return 0;
  if (!is_text_) return kind_ == Kind::Object ? tree_->members.size() : tree_->elements.size();
  std::size_t count = 0;
  for (Walk walk(text_, 0); walk.next();) ++count;
  return count;
}

bool Reader::next_in_tree() {
  if (tree_ == nullptr) return false;
  return count_++ < (is_object_ ? tree_->members.size() : tree_->elements.size());
}

Value Reader::name() const {
  if (is_text_) return Value::of_checked(walk_.name);
  return Value::referring_to(tree_->members[count_ - 1].name);
}

Value Reader::value() {
  if (is_text_) return Value::of_checked(walk_.value());
  return Value::referring_to(is_object_ ? tree_->members[count_ - 1].value
                                        : tree_->elements[count_ - 1]);
}

// ── Changing ─────────────────────────────────────────────────────────────────────────────────────

void Value::spread() {
  if (!is_text_) {
    if (!owned_) {
      owned_.reset(new Owned(*tree_));
      tree_ = owned_.get();
    }
    return;
  }
  const auto text = std::move(owned_);  // If the text is our own, the children take their parts.
  fresh();
  for (Walk walk(text_, 0); walk.next();) {
    if (kind_ == Kind::Object) {
      Member& member =
          owned_->members.emplace_back(of_checked(walk.name), of_checked(walk.value()));
      if (text) member.name.own(), member.value.own();
    } else {
      Value& element = owned_->elements.emplace_back(of_checked(walk.value()));
      if (text) element.own();
    }
  }
  is_text_ = false;
  text_ = {};
  tree_ = owned_.get();
}

std::vector<Member>& Value::members() {
  ORRERY_ASSERT(kind_ == Kind::Object);
  spread();
  return owned_->members;
}

std::vector<Value>& Value::elements() {
  ORRERY_ASSERT(kind_ == Kind::Array);
  spread();
  return owned_->elements;
}

Value* Value::find(std::string_view name) {
  if (kind_ != Kind::Object) return nullptr;
  for (Member& member : members()) {
    if (member.name.is_string(name)) return &member.value;
  }
  return nullptr;
}

Value* Value::find(std::size_t index) {
  if (kind_ != Kind::Array || index >= elements().size()) return nullptr;
  return &owned_->elements[index];
}

void Value::set_member(std::string_view name, Value value) {
  if (Value* found = find(name)) {
    *found = std::move(value);
  } else {
    members().push_back({string(std::string(name)), std::move(value)});
  }
}

bool Value::erase_member(std::string_view name) {
  return std::erase_if(members(),
                       [&](const Member& member) { return member.name.is_string(name); }) > 0;
}

void Value::insert_element(std::size_t index, Value value) {
  auto& all = elements();
  ORRERY_ASSERT(index <= all.size());
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
}

void Value::erase_element(std::size_t index) {
  auto& all = elements();
  ORRERY_ASSERT(index < all.size());
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
}

std::size_t Value::weight() const {
  constexpr std::size_t kScalar = 8;
  std::size_t sum = kScalar + text_.size();
  if (tree_ == nullptr) return sum;
  for (const Value& element : tree_->elements) sum += element.weight();
  for (const Member& member : tree_->members) sum += member.name.weight() + member.value.weight();
  return sum;
}

std::size_t Value::owned_weight() const {
  if (!owned_) return 0;
  std::size_t sum = sizeof(Owned) + owned_->text.capacity();
  for (const Value& element : owned_->elements) sum += sizeof(Value) + element.owned_weight();
  for (const Member& member : owned_->members) {
    sum += sizeof(Member) + member.name.owned_weight() + member.value.owned_weight();
  }
  return sum;
}

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────

void Value::append_to(std::string& out) const {
  if (is_text_) {
    out += text_;
    return;
  }
  switch (kind_) {
    case Kind::Undefined:
    case Kind::Null:
      out += "null";
      return;
    case Kind::Boolean:
      out += as_boolean() ? "true" : "false";
      return;
    case Kind::Number:
      if (std::isfinite(number_.real)) {
        append_number(out, number_);
      } else {
        out += "null";
      }
      return;
    case Kind::String:
      append_quoted(out, text_);
      return;
    case Kind::Array: {
      out += '[';
      bool is_first = true;
      for (const Value& element : tree_->elements) {
        if (element.is_undefined()) continue;
        if (!std::exchange(is_first, false)) out += ',';
        element.append_to(out);
      }
      out += ']';
      return;
    }
    case Kind::Object: {
      out += '{';
      bool is_first = true;
      for (const Member& member : tree_->members) {
        if (member.value.is_undefined()) continue;
        if (!std::exchange(is_first, false)) out += ',';
        member.name.append_to(out);
        out += ':';
        member.value.append_to(out);
      }
      out += '}';
      return;
    }
  }
}

std::string Value::to_text() const {
  std::string text;
  append_to(text);
  return text;
}

}  // namespace orrery::json
