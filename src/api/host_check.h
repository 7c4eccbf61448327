// Which names a server that listens on this machine only answers to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::api {

/// Everybody has the well-known key, so on a developer's machine it is the network that keeps
/// strangers out. A page in a browser there gets around that by DNS rebinding: it has its own name
/// resolve to 127.0.0.1 and then reaches the server as its own site. Its requests still carry the
/// page's name, in `Host` and often in `Origin`, and by that they are known. Thread-safe.
class HostCheck {
 public:
  /// Accepts every name: for servers that listen beyond this machine, which must have a key of
  /// their own.
  HostCheck() = default;
  /// Accepts names that mean this machine, and `more_names`.
  static HostCheck this_machine(std::vector<std::string> more_names);

  /// BadRequest for a `Host`, Forbidden for an `Origin`, that is another's. Empty ones are fine.
  Result<> check(std::string_view host, std::string_view origin) const;

 private:
  bool is_ours(std::string_view name) const;

  bool checks_ = false;
  std::vector<std::string> more_names_;  // lower case
};

/// The name in "name:port" or "[v6]:port", without brackets.
std::string_view name_of_host(std::string_view host);
/// The host in "https://name:port/path", with its port.
std::string_view host_of_url(std::string_view url);

}  // namespace orrery::api
