// Endpoint: where a server, or one region of it, is reached.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::client {

/// A URL taken apart once. Immutable, and shared by all who send to it.
struct Endpoint {
  std::string url;        ///< "https://localhost:8081", without a slash at its end
  std::string authority;  ///< "localhost:8081": the header Host
  std::string base_path;  ///< what stands before every path; mostly empty
  bool secure = false;

  /// BadRequest when it is no http or https URL.
  static Result<std::shared_ptr<const Endpoint>> parse(std::string_view url);
};

using EndpointPtr = std::shared_ptr<const Endpoint>;

}  // namespace orrery::client
