#include "api/host_check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/ip/address.hpp>

#include "base/header_name.h"

namespace orrery::api {
namespace {

// By which programs in containers reach their host's loopback address. Nobody can register them:
// `internal` is not a domain of the public DNS.
constexpr std::array<std::string_view, 3> kContainerHosts = {
    "host.docker.internal", "gateway.docker.internal", "host.containers.internal"};

bool ends_with_ignoring_case(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         equal_ignoring_case(text.substr(text.size() - end.size()), end);
}

bool is_loopback(std::string_view name) {
  // Nearly all requests: an address, or the name.
  if (name == "127.0.0.1" || equal_ignoring_case(name, "localhost")) return true;
  if (ends_with_ignoring_case(name, ".localhost")) return true;
  boost::system::error_code failure;
  const auto address = boost::asio::ip::make_address(std::string(name), failure);
  if (failure) return false;
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : std::string();
}

}  // namespace

std::string_view name_of_host(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  host = host.substr(0, host.find(':'));
  if (host.ends_with('.')) host.remove_suffix(1);  // "localhost." is the same name.
  return host;
}

std::string_view host_of_url(std::string_view url) {
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos) {
    url.remove_prefix(scheme + 3);
  }
  return url.substr(0, url.find('/'));
}

HostCheck HostCheck::this_machine(std::vector<std::string> more_names) {
  HostCheck made;
  made.checks_ = true;
  made.more_names_ = std::move(more_names);
  if (const auto name = host_name(); !name.empty()) {
    const auto first_label = name.substr(0, name.find('.'));
    made.more_names_.push_back(name);
    made.more_names_.push_back(first_label);
    made.more_names_.push_back(first_label + ".local");
  }
  for (const auto name : kContainerHosts) made.more_names_.emplace_back(name);
  std::erase(made.more_names_, "");
  return made;
}

bool HostCheck::is_ours(std::string_view name) const {
  return is_loopback(name) || std::ranges::any_of(more_names_, [&](const std::string& known) {
           return equal_ignoring_case(name, known);
         });
}

Result<> HostCheck::check(std::string_view host, std::string_view origin) const {
  if (!checks_) return {};
  if (!host.empty() && !is_ours(name_of_host(host))) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The request is for the host '{}', which is no name of this machine. "
                             "The server listens on this machine only and answers to localhost, "
                             "127.0.0.1 and the machine's own name. If clients reach it as '{}', "
                             "start it with --advertise and that address.",
                             host, name_of_host(host)));
  }
  // Pages have http or https; extensions and desktop programs have schemes of their own.
  const bool from_page = origin.starts_with("http://") || origin.starts_with("https://");
  if (origin == "null" || (from_page && !is_ours(name_of_host(host_of_url(origin))))) {
    return Error(ErrorCode::Forbidden,
                 fmt::format("The request comes from a page of '{}'. The server listens on this "
                             "machine only and takes requests of pages that were loaded from it.",
                             origin));
  }
  return {};
}

}  // namespace orrery::api
