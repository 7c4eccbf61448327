// A self-signed certificate, for servers that were given none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace orrery::http {

struct Certificate {
  std::string certificate_pem;
  std::string key_pem;
};

/// Makes a P-256 certificate valid for localhost, 127.0.0.1, ::1 and `extra_names` (host names or
/// IP addresses), from a day ago for ten years, usable as its own trust anchor.
Result<Certificate> make_self_signed_certificate(const std::vector<std::string>& extra_names,
                                                 UnixSeconds now);

/// The certificates and the key of a PKCS#12 file (.pfx). BadRequest when it is none, or has
/// another password.
Result<Certificate> read_pkcs12(std::string_view bytes, const std::string& password);

/// The validity of a certificate at a time, for a name.
enum class CertificateState {
  Valid,
  NotYetValid,  ///< of later than that time; the name is right
  Expired,
  OtherName,
  Unreadable,
};
CertificateState certificate_state(std::string_view certificate_pem, std::string_view name,
                                   UnixSeconds now);
/// Whether the certificate is valid at `now` and for `name`.
bool certificate_serves(std::string_view certificate_pem, std::string_view name, UnixSeconds now);
/// Whether the certificate was made with this private key.
bool belong_together(const Certificate& certificate);

}  // namespace orrery::http
