#include "query/bind/settings.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "query/syntax/lexer.h"

namespace orrery::query {
namespace {

/// @ and an identifier, as the lexer reads it.
bool is_parameter_name(std::string_view name) {
  const auto token = Lexer(name).next();
  return token && token->kind == Token::Kind::Parameter && token->text == name;
}

}  // namespace

Result<Parameters> Parameters::parse(const json::Value& given) {
  Parameters parameters;
  if (given.is_undefined() || given.is_null()) return parameters;
  if (!given.is_array()) {
    return Error(ErrorCode::BadRequest,
                 "The parameters of a query are an array: [{\"name\":\"@x\",\"value\":1}].");
  }
  for (json::Reader reader(given); reader.next();) {
    const json::Value each = reader.value();
    const json::Value name_value = each.member("name");
    std::string buffer;
    if (!name_value.is_string()) {
      return Error(ErrorCode::BadRequest,
                   "A parameter of a query has no name: [{\"name\":\"@x\",\"value\":1}].");
    }
    std::string name(name_value.as_string(buffer));
    if (!is_parameter_name(name)) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("The parameter name '{}' must be '@' and an identifier.",
                               name.substr(0, 100)));
    }
    if (!parameters.set(name, each.member("value"))) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("The parameter '{}' is given more than once.", name));
    }
  }
  return parameters;
}

const json::Value& Parameters::find(std::string_view name) const {
  static const json::Value kUndefined;
  const auto found = values_.find(name);
  return found == values_.end() ? kUndefined : found->second;
}

bool Parameters::set(std::string name, json::Value value) {
  value.own();
  return values_.emplace(std::move(name), std::move(value)).second;
}

Surroundings surroundings_now() {
  using Ticks = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {.begun_ticks = std::chrono::duration_cast<Ticks>(since_1970).count()};
}

}  // namespace orrery::query
