#include "json/scan.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace orrery::json {
namespace {

#if defined(__SSE2__)

/// Where 64 bytes have what decides about brackets, one bit for each byte.
struct Block {
  static constexpr std::size_t kSize = 64;
  std::uint64_t quotes = 0;
  std::uint64_t backslashes = 0;
  std::uint64_t open = 0;
  std::uint64_t close = 0;

  /// Whether there is a quote or a backslash among them. Long strings have many blocks without.
  static bool may_end_string(const char* bytes) {
    __m128i found = _mm_setzero_si128();
    for (int part = 0; part < 4; ++part) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * part));
      found = _mm_or_si128(found, _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                               _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))));
    }
    return _mm_movemask_epi8(found) != 0;
  }

  explicit Block(const char* bytes) {
    for (int part = 0; part < 4; ++part) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * part));
      // '[' and '{', and ']' and '}', differ in one bit, which is set here.
      const __m128i lower = _mm_or_si128(block, _mm_set1_epi8(0x20));
      const auto places = [&](__m128i in, char wanted) {
        const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(in, _mm_set1_epi8(wanted)));
        return static_cast<std::uint64_t>(static_cast<unsigned>(mask)) << (16 * part);
      };
      quotes |= places(block, '"');
      backslashes |= places(block, '\\');
      open |= places(lower, '{');
      close |= places(lower, '}');
    }
  }
};

/// Each bit is the parity of the bits up to and with it: of quotes, whether a string is open there.
std::uint64_t parities(std::uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

/// The quotes of a block that begin or end a string: not those that a backslash within a string
/// escapes. `carry` is 1 if the block's first byte is escaped, and becomes the same of the next
/// block's. Every stored document has backslashes, around its _etag, but few in a block.
std::uint64_t unescaped_quotes(const Block& block, bool is_inside, std::uint64_t& carry) {
  std::uint64_t quotes = block.quotes & ~carry;
  std::uint64_t todo = (block.quotes | block.backslashes) & ~carry;
  carry = 0;
  while (todo != 0) {
    const std::uint64_t first = todo & (0 - todo);
    todo ^= first;
    if ((first & block.quotes) != 0) {
      is_inside = !is_inside;
    } else if (is_inside) {
      const std::uint64_t next = first << 1;
      quotes &= ~next;
      todo &= ~next;
      carry = first >> 63;
    }
  }
  return quotes;
}

/// Goes on in whole blocks, without a branch for every string, as far as there are whole blocks.
/// Moves `at`, which is outside of strings, to what is to be looked at singly, and counts `level`;
/// true if it has become 0, with `at` after the last bracket.
bool skip_blocks(std::string_view text, std::size_t& at, std::size_t& level) {
  std::uint64_t is_inside = 0;  // All bits, or none: whether a string goes on from before.
  std::uint64_t carry = 0;      // Whether its next byte is escaped.
  std::size_t block_at = at;
  for (; block_at + Block::kSize <= text.size(); block_at += Block::kSize) {
    if (is_inside != 0 && !Block::may_end_string(text.data() + block_at)) {
      carry = 0;
      continue;
    }
    const Block block(text.data() + block_at);
    const std::uint64_t quotes = (block.backslashes | carry) == 0
                                     ? block.quotes
                                     : unescaped_quotes(block, is_inside != 0, carry);
    const std::uint64_t strings = parities(quotes) ^ is_inside;
    const std::uint64_t open = block.open & ~strings;
    const std::uint64_t close = block.close & ~strings;
    const auto closed = static_cast<std::size_t>(std::popcount(close));
    if (closed < level) {
      level += static_cast<std::size_t>(std::popcount(open));
      level -= closed;
    } else {
      for (std::uint64_t brackets = open | close; brackets != 0; brackets &= brackets - 1) {
        const std::uint64_t lowest = brackets & (0 - brackets);
        level += (lowest & open) != 0 ? 1 : std::size_t(-1);
        if (level != 0) continue;
        at = block_at + static_cast<std::size_t>(std::countr_zero(lowest)) + 1;
        return true;
      }
    }
    is_inside = 0 - (strings >> 63);
  }
  // after_string goes on after the byte that it is given: the last of the string's that were looked
  // at, or the one that is escaped.
  at = is_inside != 0 ? after_string(text, block_at - 1 + carry) : block_at;
  return false;
}

/// Moves `at` on to where `quoted` may stand, or to a bracket or a backslash, and keeps count of
/// strings; or as far as there are whole blocks.
void skip_to_quoted(std::string_view text, std::size_t& at, bool& is_in_string,
                    std::string_view quoted) {
  const auto load = [&](std::size_t from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + from));
  };
  const auto mask = [](__m128i bytes) { return static_cast<unsigned>(_mm_movemask_epi8(bytes)); };
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i letter = _mm_set1_epi8(quoted[1]);
  unsigned quotes = 0;  // That were passed: one bit for each, or for three…
  for (; at + 16 + quoted.size() <= text.size(); at += 16) {
    const __m128i block = load(at);
    const __m128i is_quote = _mm_cmpeq_epi8(block, quote);
    const __m128i is_begin =
        _mm_and_si128(_mm_and_si128(is_quote, _mm_cmpeq_epi8(load(at + 1), letter)),
                      _mm_cmpeq_epi8(load(at + quoted.size() - 1), quote));
    // Brackets and the backslash stand side by side, with one bit set.
    const __m128i raised =
        _mm_sub_epi8(_mm_or_si128(block, _mm_set1_epi8(0x20)), _mm_set1_epi8('{'));
    const __m128i is_special = _mm_cmpeq_epi8(_mm_min_epu8(raised, _mm_set1_epi8(2)), raised);
    const unsigned found = mask(_mm_or_si128(is_begin, is_special));
    if (found != 0) {
      const unsigned lowest = found & (0 - found);
      quotes ^= mask(is_quote) & (lowest - 1);
      at += static_cast<std::size_t>(std::countr_zero(lowest));
      break;
    }
    quotes ^= mask(is_quote);
  }
  if (__builtin_parity(quotes) != 0) is_in_string = !is_in_string;
}

#else

bool skip_blocks(std::string_view, std::size_t&, std::size_t&) { return false; }
void skip_to_quoted(std::string_view, std::size_t&, bool&, std::string_view) {}

#endif

bool is_structural(char c) { return c == '"' || c == '{' || c == '}' || c == '[' || c == ']'; }

}  // namespace

bool is_json_number(std::string_view number) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < number.size() && is_digit(number[at])) ++at;
    return at > begin;
  };
  const auto next_is = [&](char c) { return at < number.size() && number[at] == c; };
  if (next_is('-')) ++at;
  if (next_is('0')) {
    ++at;
  } else if (!digits()) {
    return false;
  }
  if (next_is('.')) {
    ++at;
    if (!digits()) return false;
  }
  if (next_is('e') || next_is('E')) {
    ++at;
    if (next_is('-') || next_is('+')) ++at;
    if (!digits()) return false;
  }
  return at == number.size();
}

std::string MemberSearch::quoted(std::string_view name) {
  const auto is_escaped = [](char c) {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ';
  };
  // After a quote that ends a string one of these may stand.
  constexpr std::string_view kAfterString = ",:]} ";
  if (name.empty() || kAfterString.contains(name.front()) ||
      std::ranges::any_of(name, is_escaped)) {
    return {};
  }
  return fmt::format("\"{}\"", name);
}

std::size_t MemberSearch::find(std::string_view text, std::size_t at, std::string_view quoted) {
  bool is_in_string = false;
  for (++at; at < text.size(); ++at) {
    skip_to_quoted(text, at, is_in_string, quoted);
    const char c = text[at];
    if (c == '"') {
      if (!is_in_string && text.substr(at).starts_with(quoted)) {
        const std::size_t colon = after_spaces(text, at + quoted.size());
        if (colon < text.size() && text[colon] == ':') {
          const std::size_t value = after_spaces(text, colon + 1);
          return value < text.size() ? value : kUnknown;
        }
      }
      is_in_string = !is_in_string;
    } else if (c == '\\') {
      if (!is_in_string) return kUnknown;
      at = after_string(text, at - 1) - 1;
      is_in_string = false;
      const std::size_t after = after_spaces(text, at + 1);
      // The name of a member, perhaps that one.
      if (after < text.size() && text[after] == ':') return kUnknown;
    } else if (is_in_string) {
      continue;
    } else if (c == '{' || c == '[') {
      at = after_brackets(text, at + 1, 1) - 1;
    } else if (c == '}' || c == ']') {
      return kNone;
    }
  }
  return kUnknown;
}

std::size_t after_brackets(std::string_view text, std::size_t at, std::size_t level) {
  constexpr std::size_t kLookedAtSingly = 64;
  while (at < text.size()) {
    if (skip_blocks(text, at, level)) return at;
    for (const std::size_t end = std::min(at + kLookedAtSingly, text.size()); at < end;) {
      const char c = text[at];
      if (!is_structural(c)) {
        ++at;
        continue;
      }
      if (c == '"') {
        at = after_string(text, at);
        continue;
      }
      ++at;
      if (c == '{' || c == '[') {
        ++level;
      } else if (--level == 0) {
        return at;
      }
    }
  }
  return text.size();
}

}  // namespace orrery::json
