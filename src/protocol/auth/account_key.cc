#include "protocol/auth/account_key.h"

#include <array>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "protocol/base64.h"

namespace orrery {
namespace {

/// As many as the service's own keys have.
constexpr std::size_t kKeyBytes = 64;

}  // namespace

Result<std::string> make_account_key() {
  std::array<char, kKeyBytes> bytes;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), kKeyBytes) != 1) {
    return Error(ErrorCode::Internal, "there is no randomness to make a key of");
  }
  std::string key = base64_encode(std::string_view(bytes.data(), bytes.size()));
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

Result<> check_account_key(std::string_view base64) {
  if (base64.find_first_of(" \t\r\n") != std::string_view::npos) {
    return Error(ErrorCode::BadRequest,
                 "an account key is one line of base64 without spaces; 'orrery keygen' makes one");
  }
  auto bytes = base64_decode(base64);
  if (!bytes) {
    return Error(ErrorCode::BadRequest,
                 "an account key is base64 text with its padding; 'orrery keygen' makes one");
  }
  const std::size_t size = bytes->size();
  OPENSSL_cleanse(bytes->data(), size);
  if (size < kAccountKeyBytesMin) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("an account key must have {} bytes or more, and this has {}; 'orrery "
                             "keygen' makes one",
                             kAccountKeyBytesMin, size));
  }
  return {};
}

}  // namespace orrery
