// Master-key signatures: making them (clients, tests) and checking them (server).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/base64.h"
#include "protocol/wire/http_date.h"

namespace orrery {

/// The signed content of a request. `link` is taken verbatim; the rest is lower-cased.
struct SignedContent {
  std::string_view verb;           ///< "GET"
  std::string_view resource_type;  ///< "docs"; empty for the account
  std::string_view link;           ///< "dbs/d/colls/c", or a lower-cased rid
  std::string_view x_ms_date;      ///< empty when only `date` is present
  std::string_view date;           ///< the Date header, or empty
};

/// The five lines, each ended by LF.
std::string string_to_sign(const SignedContent& content, bool with_date_line);

/// An account key with the part of HMAC-SHA256 that depends on it alone already done. Immutable,
/// thread-safe.
class MasterKey {
 public:
  /// BadRequest when it is not base64, or fewer than 16 bytes.
  static Result<MasterKey> parse(std::string_view base64);

  /// The signature in base64.
  std::string sign(const SignedContent& content) const;
  /// Compares in constant time. With both dates present the Date line may be there or not.
  bool verify(const SignedContent& content, std::string_view signature) const;

  MasterKey(const MasterKey&);
  MasterKey(MasterKey&&) noexcept;
  MasterKey& operator=(MasterKey&&) noexcept;
  ~MasterKey();

 private:
  struct State;  // The hash states after the inner and the outer padding.
  explicit MasterKey(std::unique_ptr<State> state);
  std::array<char, 44> signature_of(const SignedContent& content, bool with_date_line) const;

  std::unique_ptr<State> state_;
};

/// Takes as long for any two texts of the same length.
bool equal_in_constant_time(std::string_view a, std::string_view b);

struct AuthorizationHeader {
  std::string type;  ///< lower-cased: "master", "resource", "aad", …
  std::string version;
  std::string signature;
};

/// Percent-decodes once ('+' stays a plus) and takes type=…&ver=…&sig=… apart. Unauthorized, with a
/// message saying what is wrong, for anything malformed, empty or over the type's length limit.
Result<AuthorizationHeader> parse_authorization(std::string_view header);

/// The header value for a master-key signature, percent-encoded as clients send it.
std::string format_authorization(std::string_view signature);

}  // namespace orrery
