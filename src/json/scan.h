// Walking over JSON text that was checked before. Whatever the text is, nothing here reads past its
// end or fails to come to it; on what is not JSON it finds nonsense.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace orrery::json {

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// Whether `c` can stand in a number.
inline bool is_number_part(char c) {
  return is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

inline std::size_t after_spaces(std::string_view text, std::size_t at) {
  // Stored documents hardly have any: one comparison tells.
  while (at < text.size() && static_cast<unsigned char>(text[at]) <= ' ' && is_space(text[at])) {
    ++at;
  }
  return at;
}

/// The position after the string whose opening quote is at `at`; the end of the text if it has no
/// other quote. Sets `has_escapes` if it has some.
inline std::size_t after_string(std::string_view text, std::size_t at, bool& has_escapes) {
  ++at;
  while (true) {
#if defined(__SSE2__)
    // Most strings are short: a call of memchr would cost more than this.
    for (; at + 16 <= text.size(); at += 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
      const __m128i found = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                         _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
      const auto mask = static_cast<unsigned>(_mm_movemask_epi8(found));
      if (mask != 0) {
        at += static_cast<std::size_t>(std::countr_zero(mask));
        break;
      }
    }
#endif
    while (at < text.size() && text[at] != '"' && text[at] != '\\') ++at;
    if (at >= text.size()) return text.size();
    if (text[at] == '"') return at + 1;
    has_escapes = true;
    at += 2;
  }
}

inline std::size_t after_string(std::string_view text, std::size_t at) {
  bool has_escapes = false;
  return after_string(text, at, has_escapes);
}

/// number = [ "-" ] ( "0" / 1-9 *DIGIT ) [ "." 1*DIGIT ] [ ( "e" / "E" ) [ "-" / "+" ] 1*DIGIT ]
bool is_json_number(std::string_view number);

/// Calls `visit(begin, end)` with the span of everything outside strings that is made of the
/// characters of numbers and begins like one, valid or not, until it returns false. The text need
/// not be valid JSON.
template <typename Visit>
void for_each_number(std::string_view text, Visit&& visit) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = after_string(text, at);
    } else if (is_digit(text[at]) || text[at] == '-') {
      const std::size_t begin = at;
      while (at < text.size() && is_number_part(text[at])) ++at;
      if (!visit(begin, at)) return;
    } else {
      ++at;
    }
  }
}

/// The position after the object or array that has `level` unclosed brackets at `at`.
std::size_t after_brackets(std::string_view text, std::size_t at, std::size_t level);

/// The position after the value that begins at `at`, which must be no space.
inline std::size_t after_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  switch (text[at]) {
    case '"':
      return after_string(text, at);
    case '{':
    case '[':
      return after_brackets(text, at + 1, 1);
    default:
      for (++at; at < text.size(); ++at) {
        const char c = text[at];
        if (c == ',' || c == '}' || c == ']' || c == ':' || is_space(c)) break;
      }
      return at;
  }
}

/// A member is looked for by its quoted name, faster than by walking from member to member: in the
/// object whose opening bracket is at `at`.
///
/// Outside of a string no name can follow a quote at once, and within one it would have to be
/// escaped: where both quotes stand around a name, that is a string of its own.
struct MemberSearch {
  static constexpr std::size_t kNone = std::size_t(-1);     ///< there is no such member
  static constexpr std::size_t kUnknown = std::size_t(-2);  ///< a walk tells

  /// The text to search for; empty for a name that can only be found by a walk.
  static std::string quoted(std::string_view name);
  /// Where the value of the first member of that name begins.
  static std::size_t find(std::string_view text, std::size_t at, std::string_view quoted);
};

/// The characters that the JSON string `quoted`, with its quotes, stands for; in `buffer` if there
/// are escapes.
std::string_view unquoted(std::string_view quoted, std::string& buffer);

/// Goes over the members of an object, or the elements of an array, in their order.
///
///   for (Walk walk(text, begin); walk.next();) use(walk.name, text.substr(walk.begin, …));
///
/// next() leaves `begin` at the value's first byte. The caller may tell where the value ends (it
/// may have walked over it); otherwise the walk finds out.
class Walk {
 public:
  /// `at` is the place of the opening bracket.
  Walk(std::string_view text, std::size_t at)
      : text_(text), at_(at + 1), is_object_(at < text.size() && text[at] == '{') {}

  bool next() {
    if (!is_first_) {
      if (end == 0) end = after_value(text_, begin);
      at_ = after_spaces(text_, end);
      if (at_ >= text_.size() || text_[at_] != ',') return false;
      ++at_;
    }
    is_first_ = false;
    end = 0;
    at_ = after_spaces(text_, at_);
    if (at_ >= text_.size()) return false;
    if (is_object_) {
      if (text_[at_] != '"') return false;
      const std::size_t name_begin = at_;
      name_has_escapes = false;
      at_ = after_string(text_, at_, name_has_escapes);
      name = text_.substr(name_begin, at_ - name_begin);
      at_ = after_spaces(text_, at_);
      if (at_ >= text_.size() || text_[at_] != ':') return false;
      at_ = after_spaces(text_, at_ + 1);
      if (at_ >= text_.size()) return false;
    } else if (text_[at_] == ']') {
      return false;
    }
    begin = at_;
    return true;
  }

  /// Where the object or array ends, once next() has said false.
  std::size_t after() const { return at_ < text_.size() ? at_ + 1 : at_; }

  std::string_view name;  ///< of a member, with its quotes and escapes
  bool name_has_escapes = false;
  std::size_t begin = 0;  ///< of the value
  std::size_t end = 0;    ///< after the value; 0: not known yet

  /// The characters of the name, in `buffer` if there are escapes.
  std::string_view plain_name(std::string& buffer) const;

  std::string_view value() {
    if (end == 0) end = after_value(text_, begin);
    return text_.substr(begin, end - begin);
  }

 private:
  std::string_view text_;
  std::size_t at_;
  bool is_object_;
  bool is_first_ = true;
};

inline std::string_view Walk::plain_name(std::string& buffer) const {
  if (name_has_escapes || name.size() < 2) return unquoted(name, buffer);
  return name.substr(1, name.size() - 2);
}

}  // namespace orrery::json
