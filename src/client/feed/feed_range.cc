#include <nlohmann/json.hpp>

#include "client/exchange/refusal.h"
#include "orrery/options.h"
#include "protocol/keys/epk.h"

namespace orrery::client {

std::string FeedRange::to_json() const {
  nlohmann::ordered_json json;
  json["Range"]["min"] = min;
  json["Range"]["max"] = max;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FeedRange FeedRange::from_json(std::string_view json) {
  const auto refuse = [] {
    return failure_of(Failure::Argument,
                      R"(a feed range is {"Range":{"min":"…","max":"…"}} with hexadecimal bounds)");
  };
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("Range")) throw refuse();
  const auto& range = parsed["Range"];
  const auto bound = [&](const char* name) {
    if (!range.is_object() || !range.contains(name) || !range[name].is_string()) throw refuse();
    // Either case of hexadecimal is read; bounds are compared as text, so there is one form of it.
    const auto epk = Epk::from_hex(range[name].get_ref<const std::string&>());
    if (!epk) throw refuse();
    return epk->hex();
  };
  FeedRange result{.min = bound("min"), .max = bound("max")};
  if (result.max <= result.min) throw refuse();
  return result;
}

}  // namespace orrery::client
