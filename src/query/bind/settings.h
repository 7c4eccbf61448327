// The inputs of a query besides its text: its parameters, and its container's settings for search,
// geometry and computed properties.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "query/functions/functions.h"

namespace orrery::query {

/// Values by their names, with the @.
class Parameters {
 public:
  /// From the member `parameters` of a query's body: an array of {"name":"@x","value":…}; undefined
  /// and null are none. Keeps copies. BadRequest for a name that is none, or that comes twice; one
  /// without a value is undefined.
  static Result<Parameters> parse(const json::Value& given);

  /// Undefined when it was not given. Lives as long as this.
  const json::Value& find(std::string_view name) const;
  using Values = std::map<std::string, json::Value, std::less<>>;
  const Values& all() const { return values_; }
  /// False when it is there already: nothing changes then.
  bool set(std::string name, json::Value value);

 private:
  Values values_;
};

/// User-defined functions of a container. Scripts will fill it; until then there are none.
class UserFunctions {
 public:
  virtual ~UserFunctions() = default;
  virtual bool has(std::string_view name) const = 0;
  /// An error ends the query.
  virtual Result<json::Value> call(std::string_view name, Arguments arguments) const = 0;
};

/// Those of a query that begins now.
Surroundings surroundings_now();

struct Settings {
  Surroundings surroundings;

  using MemberPath = std::vector<std::string>;
  std::string default_language = "en-US";
  struct Language {
    MemberPath path;
    std::string language;
  };
  std::vector<Language> languages;

  struct Vector {
    MemberPath path;
    std::string distance_function;  ///< cosine, dotproduct, euclidean
    std::string data_type;          ///< float32, int8, uint8
  };
  std::vector<Vector> vectors;

  /// Properties that documents seem to have: each the value of a query over one of them.
  struct Computed {
    std::string name;
    std::string query;  ///< SELECT VALUE expression FROM alias
  };
  std::vector<Computed> computed;

  const UserFunctions* user_functions = nullptr;  ///< none: every UDF is unknown
};

}  // namespace orrery::query
