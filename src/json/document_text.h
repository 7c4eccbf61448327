// The text of a document: checked once on the way in, and from then on spliced, never written anew.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace orrery::json {

inline constexpr std::size_t kNestingMax = 128;

// A parser of simdjson keeps tables of many times the size of the longest text it has seen. Threads
// keep one for texts up to this size; a longer text gets its own, so that a few large documents do
// not make every thread large for ever.
inline constexpr std::size_t kKeptParserBytesMax = 256 * 1024;
inline constexpr std::size_t kParserBytesMin = 4 * 1024;
/// simdjson's limit is only a first guard: it does not count empty objects and arrays.
inline constexpr std::size_t kParserDepth = kNestingMax + 2;

/// A scalar at a path; an object or array there, or nothing, is std::monostate.
struct NullValue {
  bool operator==(const NullValue&) const = default;
};
using Scalar = std::variant<std::monostate, NullValue, bool, double, std::string>;

/// Member names from the top of a document inwards.
using MemberPath = std::vector<std::string>;

/// A document's own `ttl` member.
struct TtlMember {
  enum class Kind { Absent, Valid, Invalid } kind = Kind::Absent;
  std::int32_t seconds = 0;  ///< -1 or 1…2147483647 when valid
};

/// The members that the server adds to a document, in the order in which it appends them. `_lsn` is
/// none of them: only feeds show it.
enum class SystemProperty : std::uint8_t { Rid, Self, ETag, Attachments, Ts };
inline constexpr std::size_t kSystemPropertyCount = 5;

/// Where in its body a client had system properties, from left to right.
class SystemPlaces {
 public:
  struct Place {
    std::uint32_t offset = 0;  ///< in DocumentText::open_text: 1, or the end of a member
    SystemProperty property = SystemProperty::Rid;
    bool operator==(const Place&) const = default;
  };

  void add(const Place& place) { places_[count_++] = place; }
  /// Moves those behind `offset_max` back to it.
  void clamp(std::uint32_t offset_max) {
    for (Place& place : places_) place.offset = std::min(place.offset, offset_max);
  }
  std::span<const Place> list() const { return {places_.data(), count_}; }

 private:
  std::array<Place, kSystemPropertyCount> places_;
  std::uint8_t count_ = 0;
};

/// A document as a client sent it, checked: valid UTF-8 and JSON, an object, nested no deeper than
/// kNestingMax, no member name twice at the top level, every number one that a double can hold
/// (integers beyond 64 bits are fine).
///
/// The text keeps its bytes, without the top-level members that the server owns (`_rid`, `_self`,
/// `_etag`, `_attachments`, `_ts`, `_lsn`) and without its closing brace, so that
/// with_system_properties can add them. Parsing uses a parser that each thread keeps; a
/// DocumentText refers to nothing of it, and may be moved to another thread.
class DocumentText {
 public:
  /// Reads the scalars at the `wanted` paths on the way: the body is parsed once. A path that
  /// begins with a member that the server owns finds nothing. Where an inner object has a name
  /// twice, the first one counts. BadRequest with a message that says what is wrong and, where it
  /// can be told, where.
  static Result<DocumentText> parse(std::string_view body, std::span<const MemberPath> wanted = {});

  /// The `id` member. BadRequest when it is missing, not a string, empty, over 1023 bytes, or has a
  /// backslash.
  Result<std::string> id() const;
  TtlMember ttl() const { return ttl_; }
  /// The value that parse found at wanted[index].
  const Scalar& wanted(std::size_t index) const { return wanted_[index]; }

  /// Calls `visit` with the path of every leaf (scalars, and empty objects and arrays, but not for
  /// an empty document); array elements are "[]". For request charges under an unusual indexing
  /// policy: it parses the text again. `visit` may parse other documents; the views end with the
  /// call.
  void for_each_leaf(const std::function<void(std::span<const std::string_view>)>& visit) const;
  /// How many calls that would make. Counted while parsing.
  std::size_t leaf_count() const { return leaf_count_; }

  /// `{…members` with neither a closing brace nor a trailing comma; just `{` for an empty object.
  std::string_view open_text() const { return open_text_; }
  bool has_members() const { return open_text_.size() > 1; }
  const SystemPlaces& system_places() const { return system_places_; }

 private:
  DocumentText() = default;

  std::string open_text_;
  SystemPlaces system_places_;
  std::size_t leaf_count_ = 0;
  Scalar id_;  ///< monostate when missing; NullValue stands for anything that is not a string
  TtlMember ttl_;
  std::vector<Scalar> wanted_;
};

/// The values of a document's system properties.
struct SystemProperties {
  std::string_view rid;
  std::string_view self;  ///< with its trailing slash
  std::string_view etag;  ///< with its quotes; they are escaped here
  std::int64_t ts;
};
/// The whole text of a stored document: open_text with the system properties at their `places`,
/// those without one at the end, and '}'. The places are those that were parsed with open_text, or
/// none.
std::string with_system_properties(std::string_view open_text, const SystemProperties& properties,
                                   const SystemPlaces& places = {});

/// Appends `text` as a JSON string with its quotes.
void append_quoted(std::string& out, std::string_view text);

}  // namespace orrery::json
