// Authenticator: who may come in. Every request passes here before anything else is told about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/context.h"
#include "base/clock.h"
#include "base/result.h"
#include "protocol/auth/auth_signature.h"

namespace orrery::api {

struct AccountKeys {
  std::vector<MasterKey> read_write;  ///< primary, secondary
  std::vector<MasterKey> read_only;
  std::vector<std::string> texts;  ///< all of them in base64, for bearers of the key itself
};

class Authenticator {
 public:
  Authenticator(AccountKeys keys, const Clock& clock, bool check_dates)
      : keys_(std::move(keys)), clock_(clock), check_dates_(check_dates) {}

  /// Unauthorized, or Forbidden when the signature is right but its date is not. `path` is null for
  /// a route that does not exist: strangers learn nothing but 401 there either.
  Result<Access> authenticate(const http::Request& request, const ResourcePath* path) const;

  /// `Authorization: Bearer <account key>`, for scrapers that cannot sign.
  bool bears_key(const http::Request& request) const;

 private:
  Result<> check_date(std::string_view date) const;

  const AccountKeys keys_;
  const Clock& clock_;
  const bool check_dates_;
};

}  // namespace orrery::api
