// Functions of geometries.
#include <array>
#include <string>
#include <utility>

#include "geo/geometry.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Value;

template <auto question>
Value of_two(Arguments arguments, const Surroundings& surroundings) {
  const geo::GeometryPtr a = geo::Geometry::read_valid(*arguments[0], surroundings.is_planar);
  if (!a) return {};
  const geo::GeometryPtr b = geo::Geometry::read_valid(*arguments[1], surroundings.is_planar);
  if (!b) return {};
  const auto answer = ((*a).*question)(*b);
  if (!answer) return {};
  if constexpr (std::is_same_v<decltype(answer), const std::optional<bool>>) {
    return Value::boolean(*answer);
  } else {
    return Value::number(*answer);
  }
}

Value area(Arguments arguments, const Surroundings& surroundings) {
  const geo::GeometryPtr geometry =
      geo::Geometry::read_valid(*arguments[0], surroundings.is_planar);
  const auto answer = geometry ? geometry->area() : std::nullopt;
  return answer ? Value::number(*answer) : Value();
}

Value is_valid(Arguments arguments, const Surroundings& surroundings) {
  if (!arguments[0]->is_object()) return {};
  return Value::boolean(geo::Geometry::read_valid(*arguments[0], surroundings.is_planar) !=
                        nullptr);
}

Value is_valid_detailed(Arguments arguments, const Surroundings& surroundings) {
  if (!arguments[0]->is_object()) return {};
  auto read = geo::Geometry::read(*arguments[0], surroundings.is_planar);
  auto* const reason = std::get_if<std::string>(&read);
  Value detail = Value::object();
  detail.set_member("valid", Value::boolean(reason == nullptr));
  if (reason != nullptr) detail.set_member("reason", Value::string(std::move(*reason)));
  return detail;
}

constexpr Function spatial(std::string_view name, std::uint8_t count,
                           Value (*call_in)(Arguments, const Surroundings&)) {
  return {.name = name,
          .arguments_min = count,
          .arguments_max = count,
          .call = nullptr,
          .kind = Function::Kind::PerQuery,
          .call_in = call_in};
}

constexpr std::array kSpatialFunctions = {
    spatial("ST_AREA", 1, area),
    spatial("ST_DISTANCE", 2, of_two<&geo::Geometry::distance>),
    spatial("ST_INTERSECTS", 2, of_two<&geo::Geometry::intersects>),
    spatial("ST_ISVALID", 1, is_valid),
    spatial("ST_ISVALIDDETAILED", 1, is_valid_detailed),
    spatial("ST_WITHIN", 2, of_two<&geo::Geometry::is_within>),
};

}  // namespace

std::span<const Function> spatial_functions() { return kSpatialFunctions; }

}  // namespace orrery::query
