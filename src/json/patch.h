// Patch: a partial update. A short list of operations that make a new document of an old one.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace orrery::json {

/// A JSON pointer as its segments: "/a~1b/0" is {"a/b", "0"}.
using Pointer = std::vector<std::string>;

/// BadRequest when it does not begin with '/', or has a '~' that is neither ~0 nor ~1.
Result<Pointer> parse_pointer(std::string_view text);

/// Depends on nothing that it was read from. Const members may be called from several threads.
class Patch {
 public:
  static constexpr std::size_t kOperationsMax = 10;

  /// Reads an array of 1 to kOperationsMax objects with `op` and, by operation, `path`, `from` and
  /// `value`:
  ///
  ///   add      path, value   an object's member, old or new; in an array it is inserted
  ///   set      path, value   the same, but an array's element is replaced
  ///   replace  path, value   what must be there
  ///   remove   path          what must be there
  ///   incr     path, value   adds to a number; what is missing is made
  ///   move     from, path    removes, then adds
  ///
  /// BadRequest; messages count operations from 1.
  static Result<Patch> parse(const Value& operations);

  /// Calls `check` with every path that is written or taken away; what it refuses with is said of
  /// the operation, and returned.
  Result<> check_paths(const std::function<Result<>(const Pointer&)>& check) const;

  /// Applies the operations in order. BadRequest when one cannot be; then the document is only good
  /// to be thrown away. Parts that no operation touches keep their bytes. The document may refer to
  /// this patch afterwards.
  Result<> apply(Value& document) const;

  std::size_t size() const { return operations_.size(); }

 private:
  enum class Op { Add, Set, Replace, Remove, Increment, Move };
  struct Operation {
    Op op = Op::Add;
    Pointer path;
    Pointer from;
    Value value;
  };
  class Step;

  static Result<Operation> parse_operation(const Value& value);
  static std::string_view name_of(Op op);

  std::vector<Operation> operations_;
};

}  // namespace orrery::json
