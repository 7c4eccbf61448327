// Authenticator: who may come in. Every request passes here before anything else is told about it.
#pragma once

#include <string_view>

#include "api/authorizer.h"
#include "api/keyring.h"
#include "base/clock.h"
#include "base/result.h"
#include "http/message.h"
#include "protocol/wire/resource_path.h"

namespace orrery::api {

class Authenticator {
 public:
  /// The keyring must outlive it.
  Authenticator(const Keyring& keys, const Clock& clock, bool check_dates)
      : keys_(keys), clock_(clock), check_dates_(check_dates) {}

  /// Unauthorized, or Forbidden when the signature is right but its date is not. `path` is null for
  /// a route that does not exist: strangers learn nothing but 401 there either.
  Result<Principal> authenticate(const http::Request& request, const ResourcePath* path) const;

  /// `Authorization: Bearer <account key>`, for scrapers that cannot sign.
  bool bears_key(const http::Request& request) const;

 private:
  Result<> check_date(std::string_view date) const;
  void note_use(const AccountKey& key) const;

  const Keyring& keys_;
  const Clock& clock_;
  const bool check_dates_;
};

}  // namespace orrery::api
