#include "client/exchange/endpoint.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/header_name.h"

namespace orrery::client {

Result<EndpointPtr> Endpoint::parse(std::string_view url) {
  const auto refuse = [url] {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("the endpoint must be a URL such as http://127.0.0.1:8081/, not '{}'", url));
  };
  const auto scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return refuse();
  const bool secure = equal_ignoring_case(url.substr(0, scheme_end), "https");
  if (!secure && !equal_ignoring_case(url.substr(0, scheme_end), "http")) return refuse();
  const auto is_stray = [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F || c == '?' || c == '#' || c == '@';
  };
  if (std::ranges::any_of(url, is_stray)) return refuse();

  while (url.ends_with('/')) url.remove_suffix(1);
  const auto rest = url.size() > scheme_end + 3 ? url.substr(scheme_end + 3) : std::string_view();
  const auto slash = std::min(rest.find('/'), rest.size());
  if (slash == 0) return refuse();
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->secure = secure;
  endpoint->authority = rest.substr(0, slash);
  endpoint->base_path = rest.substr(slash);
  endpoint->url =
      fmt::format("{}://{}{}", secure ? "https" : "http", endpoint->authority, endpoint->base_path);
  return EndpointPtr(std::move(endpoint));
}

}  // namespace orrery::client
