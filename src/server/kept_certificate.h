// The self-signed certificate that a server makes for itself, and keeps: clients are told to trust
// it, so it must not change without need.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/certificate.h"

namespace orrery::server {

inline constexpr std::string_view kCertificateFile = "tls-certificate.pem";
inline constexpr std::string_view kCertificateKeyFile = "tls-key.pem";

/// The certificate in `directory`, which nobody else writes to meanwhile. Made when there is none;
/// made anew when it does not serve `host` (or localhost), ends within a month, or was damaged. One
/// that is not valid yet is kept, with a warning: the clock is wrong, not the certificate.
Result<http::Certificate> keep_certificate(const std::filesystem::path& directory,
                                           const std::string& host, UnixSeconds now);

/// The certificate for localhost in the user's cache ($XDG_CACHE_HOME/orrery or ~/.cache/orrery),
/// for servers whose own directory does not last. Servers that start at the same time get the same
/// one. Unavailable when there is no such place.
Result<http::Certificate> cached_certificate(UnixSeconds now);

}  // namespace orrery::server
