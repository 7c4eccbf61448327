// Values: what a JSON text says, read where it is asked for and changed where it is changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/scan.h"

namespace orrery::json {

/// In the order in which Cosmos DB sorts values of different types.
enum class Kind : std::uint8_t { Undefined, Null, Boolean, Number, String, Array, Object };

/// A 64-bit integer, exactly, or a double.
struct Number {
  bool is_integer = true;
  std::int64_t integer = 0;
  double real = 0;  ///< the value, or nearest to it, in both cases

  static Number of(std::int64_t value) {
    return {.is_integer = true, .integer = value, .real = static_cast<double>(value)};
  }
  static Number of(double value) { return {.is_integer = false, .integer = 0, .real = value}; }
  /// The value of a JSON number. Too large is infinite, too small is zero.
  static Number parse(std::string_view token);
};

struct Member;

/// A JSON value, or undefined (which is no JSON: what is not there).
///
/// A value may refer to the text that it was read from, or to another value that it is a part of:
/// both must outlive it and stay as they are, unless own() was called. Reading goes to the text
/// each time and touches only what is asked for: to make one from a text that was checked before
/// costs nothing. Changing an object or array first spreads it out, one level; what is not touched
/// is written back byte by byte, numbers, spaces and escapes included. Where an object has a name
/// twice, the first one counts.
///
/// Copying copies what the value owns. Const members may be called from several threads.
class Value {
 public:
  Value() = default;  ///< undefined
  Value(const Value& other);
  Value(Value&& other) noexcept = default;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept = default;
  ~Value() = default;

  static Value null() { return Value(Kind::Null); }
  static Value boolean(bool value);
  static Value number(std::int64_t value) { return number(Number::of(value)); }
  static Value number(double value) { return number(Number::of(value)); }
  static Value number(Number value);
  static Value string(std::string text);
  /// A string that refers to `text`.
  static Value string_at(std::string_view text);
  static Value array(std::vector<Value> elements = {});
  static Value object(std::vector<Member> members);
  static Value object();

  /// Checks `text` and refers to it. Any JSON text, nested no deeper than kNestingMax; numbers may
  /// be of any size. BadRequest with a message that says what is wrong.
  static Result<Value> parse(std::string_view text);
  /// Refers to a text that was checked before, such as a stored document, or a part of one.
  static Value of_checked(std::string_view text);
  /// The same of an object's text without spaces around it, such as a whole stored document, of
  /// which nothing is looked at: it may be long, and its end not in the processor's caches.
  static Value of_object(std::string_view text) {
    Value result(Kind::Object);
    result.text_ = text;
    result.is_text_ = true;
    return result;
  }
  /// Refers to the same as `other`, or to `other`; owns nothing.
  static Value referring_to(const Value& other);

  Kind kind() const { return kind_; }
  bool is_undefined() const { return kind_ == Kind::Undefined; }
  bool is_null() const { return kind_ == Kind::Null; }
  bool is_boolean() const { return kind_ == Kind::Boolean; }
  bool is_number() const { return kind_ == Kind::Number; }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_array() const { return kind_ == Kind::Array; }
  bool is_object() const { return kind_ == Kind::Object; }
  bool is_true() const { return kind_ == Kind::Boolean && number_.integer != 0; }

  bool as_boolean() const { return number_.integer != 0; }  ///< of a boolean
  Number as_number() const;                                 ///< of a number
  /// The characters of a string. They are in `buffer` if there were escapes, else where the value
  /// has or refers to them.
  std::string_view as_string(std::string& buffer) const;
  /// The characters of a string; empty of everything that is none.
  std::string string_or_empty() const;
  /// Whether it is a string of exactly these characters.
  bool is_string(std::string_view text) const;

  /// The JSON text that the value is read from, if it is: of an array or object, a number or
  /// string.
  std::optional<std::string_view> text() const {
    return is_text_ ? std::optional(text_) : std::nullopt;
  }

  // ── Reading objects and arrays. Results refer to this value or its text. ──
  /// Undefined when there is none, and of everything that is not an object.
  Value member(std::string_view name) const&;
  Value member(std::string_view name) &&;
  /// Undefined beyond the end, and of everything that is not an array.
  Value element(std::size_t index) const&;
  Value element(std::size_t index) &&;
  /// Members of an object, those of a name twice included; elements of an array; 0 of all else.
  std::size_t size() const;

  // ── Changing objects and arrays. Pointers and references hold until the next change beside. ──
  /// Nothing when there is none, or when it is not an object.
  Value* find(std::string_view name);
  /// Nothing beyond the end, or when it is not an array.
  Value* find(std::size_t index);
  std::vector<Member>& members();  ///< of an object
  std::vector<Value>& elements();  ///< of an array
  /// In place where the name is there, else as the last one. Of an object.
  void set_member(std::string_view name, Value value);
  /// Whether it was there. Of an object.
  bool erase_member(std::string_view name);
  /// `index` up to and including size(). Of an array.
  void insert_element(std::size_t index, Value value);
  /// `index` below size(). Of an array.
  void erase_element(std::size_t index);

  bool owns_something() const { return owned_ != nullptr; }
  /// About how many bytes its text has, and how many it keeps in memory of its own.
  std::size_t weight() const;
  std::size_t owned_weight() const;
  /// Copies whatever the value refers to, so that it depends on nothing else.
  void own();

  /// Appends the JSON text. Undefined members and elements are left out; undefined itself, and
  /// numbers that JSON has not (NaN, infinity), are `null`.
  void append_to(std::string& out) const;
  std::string to_text() const;

 private:
  friend class Reader;

  /// The data that a value owns. On the heap, so that views into it survive a move.
  struct Owned;

  struct Deleter {
    void operator()(Owned* owned) const;
  };

  explicit Value(Kind kind) : kind_(kind) {}
  Owned& fresh();
  void spread();

  Kind kind_ = Kind::Undefined;
  /// Whether text_ is JSON text (of a number, string, array or object); of a string it is otherwise
  /// its characters.
  bool is_text_ = false;
  Number number_;  ///< of a number that is not text; `integer` of a boolean
  std::string_view text_;
  std::unique_ptr<Owned, Deleter> owned_;
  const Owned* tree_ = nullptr;  ///< of an array or object that is not text
};

struct Member {
  Value name;  ///< a string
  Value value;
};

/// Goes over the members of an object or the elements of an array, in their order; over nothing of
/// all else. Its values refer to the one that is read, which must stay as it is.
///
///   for (Reader reader(value); reader.next();) use(reader.name(), reader.value());
class Reader {
 public:
  explicit Reader(const Value& value)
      : walk_(value.is_text_ ? value.text_ : std::string_view(), 0),
        tree_(value.tree_),
        is_text_(value.is_text_ && (value.is_object() || value.is_array())),
        is_object_(value.is_object()) {}

  bool next() { return is_text_ ? walk_.next() : next_in_tree(); }
  Value name() const;  ///< of a member
  Value value();

 private:
  bool next_in_tree();

  Walk walk_;
  const Value::Owned* tree_;
  std::size_t count_ = 0;  ///< of those in a tree that were read
  bool is_text_;
  bool is_object_;
};

/// Appends a finite number: an integer as such, a double with the fewest digits that read back as
/// the same double. Without an exponent from 1e-4 up to what 15 digits, or its own if they are
/// more, can tell; else as 1e+15, 5e-324.
void append_number(std::string& out, Number number);

}  // namespace orrery::json
