// IS_ARRAY and the like: always true or false.
#include <cmath>

#include "query/eval/arithmetic.h"
#include "query/functions/date_time.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Kind;
using json::Value;

template <Kind kind>
Value is_kind(Arguments arguments) {
  return Value::boolean(arguments[0]->kind() == kind);
}

Value is_defined(Arguments arguments) { return Value::boolean(!arguments[0]->is_undefined()); }

Value is_primitive(Arguments arguments) {
  switch (arguments[0]->kind()) {
    case Kind::Null:
    case Kind::Boolean:
    case Kind::Number:
    case Kind::String:
      return Value::boolean(true);
    default:
      return Value::boolean(false);
  }
}

Value is_finite_number(Arguments arguments) {
  return Value::boolean(arguments[0]->is_number() && std::isfinite(arguments[0]->as_number().real));
}

Value is_integer(Arguments arguments) {
  return Value::boolean(arguments[0]->is_number() &&
                        integral(arguments[0]->as_number()).has_value());
}

Value is_date_time(Arguments arguments) {
  std::string buffer;
  return Value::boolean(arguments[0]->is_string() &&
                        parse_date_time(arguments[0]->as_string(buffer)));
}

constexpr Function kTypesFunctions[] = {
    {"IS_ARRAY", 1, 1, is_kind<Kind::Array>, true},
    {"IS_BOOL", 1, 1, is_kind<Kind::Boolean>, true},
    {"IS_DATETIME", 1, 1, is_date_time, true},
    {"IS_DEFINED", 1, 1, is_defined, true},
    {"IS_FINITE_NUMBER", 1, 1, is_finite_number, true},
    {"IS_INTEGER", 1, 1, is_integer, true},
    {"IS_NULL", 1, 1, is_kind<Kind::Null>, true},
    {"IS_NUMBER", 1, 1, is_kind<Kind::Number>, true},
    {"IS_OBJECT", 1, 1, is_kind<Kind::Object>, true},
    {"IS_PRIMITIVE", 1, 1, is_primitive, true},
    {"IS_STRING", 1, 1, is_kind<Kind::String>, true},
};

}  // namespace

std::span<const Function> type_functions() { return kTypesFunctions; }

}  // namespace orrery::query
