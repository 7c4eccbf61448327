// The low-level SHA-256 functions are deprecated in OpenSSL 3 in favour of EVP, whose contexts live
// on the heap and are looked up by name. Every request is signed: here a state is a plain struct
// that is copied, and a signature is checked without allocating.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "protocol/auth/auth_signature.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/header_name.h"
#include "protocol/wire/resource_path.h"

namespace orrery {
namespace {

constexpr std::size_t kKeyBytesMin = 16;
constexpr std::size_t kHashBlockSize = 64;
constexpr std::size_t kSignatureSize = base64_size(SHA256_DIGEST_LENGTH, Base64Alphabet::Standard);
static_assert(kSignatureSize == 44);

// Lengths of the header as it was sent, by type of token.
constexpr std::size_t kMasterHeaderMax = 1024;
constexpr std::size_t kResourceHeaderMax = 8192;
constexpr std::size_t kHeaderMax = 16384;  // Entra ID; also whatever else somebody may send.

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

/// Hands the five lines to `put_lower` and `put`, in order.
template <typename PutLower, typename Put>
void for_each_piece(const SignedContent& content, bool with_date_line, PutLower put_lower,
                    Put put) {
  put_lower(content.verb);
  put("\n");
  put_lower(content.resource_type);
  put("\n");
  put(content.link);
  put("\n");
  put_lower(content.x_ms_date);
  put("\n");
  if (with_date_line) put_lower(content.date);
  put("\n");
}

/// Gathers small pieces, so that the hash sees blocks and not words.
class HashInput {
 public:
  explicit HashInput(SHA256_CTX& hash) : hash_(hash) {}

  void put(std::string_view text) {
    while (!text.empty()) {
      const std::string_view part = take(text);
      std::memcpy(buffer_.data() + size_, part.data(), part.size());
      size_ += part.size();
    }
  }
  void put_lower(std::string_view text) {
    while (!text.empty()) {
      const std::string_view part = take(text);
      std::ranges::transform(part, buffer_.begin() + static_cast<std::ptrdiff_t>(size_), lower);
      size_ += part.size();
    }
  }
  void flush() {
    SHA256_Update(&hash_, buffer_.data(), size_);
    size_ = 0;
  }

 private:
  std::string_view take(std::string_view& text) {
    if (size_ == buffer_.size()) flush();
    const std::string_view part = text.substr(0, buffer_.size() - size_);
    text.remove_prefix(part.size());
    return part;
  }

  SHA256_CTX& hash_;
  std::array<char, 256> buffer_;
  std::size_t size_ = 0;
};

Error unauthorized(std::string_view what) {
  return Error(ErrorCode::Unauthorized,
               "The authorization header is malformed: " + std::string(what) +
                   ". Its form is type%3D{type}%26ver%3D{version}%26sig%3D{signature}");
}

/// Takes `key=value` apart; nothing when the key is another or the value empty.
std::optional<std::string_view> value_of(std::string_view part, std::string_view key) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  if (!equal_ignoring_case(part.substr(0, equals), key)) return std::nullopt;
  part.remove_prefix(equals + 1);
  if (part.empty()) return std::nullopt;
  return part;
}

}  // namespace

std::string string_to_sign(const SignedContent& content, bool with_date_line) {
  std::string text;
  text.reserve(content.verb.size() + content.resource_type.size() + content.link.size() +
               content.x_ms_date.size() + (with_date_line ? content.date.size() : 0) + 5);
  for_each_piece(
      content, with_date_line,
      [&](std::string_view piece) {
        for (char c : piece) text.push_back(lower(c));
      },
      [&](std::string_view piece) { text += piece; });
  return text;
}

// HMAC is H(outer padding, H(inner padding, text)). Each padding is one block made of the key.
struct MasterKey::State {
  SHA256_CTX inner;
  SHA256_CTX outer;

  ~State() { OPENSSL_cleanse(this, sizeof(*this)); }
};

MasterKey::MasterKey(std::unique_ptr<State> state) : state_(std::move(state)) {}
MasterKey::MasterKey(const MasterKey& other) : state_(std::make_unique<State>(*other.state_)) {}
MasterKey::MasterKey(MasterKey&&) noexcept = default;
MasterKey& MasterKey::operator=(MasterKey&&) noexcept = default;
MasterKey::~MasterKey() = default;

Result<MasterKey> MasterKey::parse(std::string_view base64) {
  auto key = base64_decode(base64);
  if (!key) return Error(ErrorCode::BadRequest, "An account key is base64 text with its padding");
  if (key->size() < kKeyBytesMin) {
    OPENSSL_cleanse(key->data(), key->size());
    return Error(ErrorCode::BadRequest, "An account key has at least 16 bytes");
  }

  std::array<unsigned char, kHashBlockSize> block{};
  if (key->size() > block.size()) {
    SHA256(reinterpret_cast<const unsigned char*>(key->data()), key->size(), block.data());
  } else {
    std::memcpy(block.data(), key->data(), key->size());
  }
  OPENSSL_cleanse(key->data(), key->size());

  constexpr unsigned char kInnerPad = 0x36;
  constexpr unsigned char kOuterPad = 0x5C;
  auto state = std::make_unique<State>();
  for (auto& byte : block) byte ^= kInnerPad;
  SHA256_Init(&state->inner);
  SHA256_Update(&state->inner, block.data(), block.size());
  for (auto& byte : block) byte ^= kInnerPad ^ kOuterPad;
  SHA256_Init(&state->outer);
  SHA256_Update(&state->outer, block.data(), block.size());
  OPENSSL_cleanse(block.data(), block.size());
  return MasterKey(std::move(state));
}

std::array<char, 44> MasterKey::signature_of(const SignedContent& content,
                                             bool with_date_line) const {
  SHA256_CTX hash = state_->inner;
  HashInput input(hash);
  for_each_piece(
      content, with_date_line, [&](std::string_view piece) { input.put_lower(piece); },
      [&](std::string_view piece) { input.put(piece); });
  input.flush();
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_Final(digest.data(), &hash);

  hash = state_->outer;
  SHA256_Update(&hash, digest.data(), digest.size());
  SHA256_Final(digest.data(), &hash);

  std::array<char, kSignatureSize> text;
  write_base64(text.data(), {reinterpret_cast<const char*>(digest.data()), digest.size()},
               Base64Alphabet::Standard);
  return text;
}

std::string MasterKey::sign(const SignedContent& content) const {
  const auto text = signature_of(content, content.x_ms_date.empty());
  return {text.data(), text.size()};
}

bool MasterKey::verify(const SignedContent& content, std::string_view signature) const {
  if (signature.size() != kSignatureSize) return false;
  const auto equals = [&](bool with_date_line) {
    const auto expected = signature_of(content, with_date_line);
    return CRYPTO_memcmp(expected.data(), signature.data(), expected.size()) == 0;
  };
  // Some old clients sign the Date line whenever there is a Date header, as proxies may add one
  // after the client signed without it.
  if (content.x_ms_date.empty()) return equals(true);
  return equals(false) || (!content.date.empty() && equals(true));
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<AuthorizationHeader> parse_authorization(std::string_view header) {
  if (header.empty()) {
    return Error(ErrorCode::Unauthorized, "The authorization header is missing");
  }
  if (header.size() > kHeaderMax) return unauthorized("it is too long");
  const auto decoded = percent_decode(header);
  if (!decoded) return unauthorized("it has a '%' without two hex digits");

  // Split at the first two '&' only: what a resource token signs with may contain more.
  const std::string_view text = *decoded;
  const std::size_t first = text.find('&');
  const std::size_t second = first == std::string_view::npos ? first : text.find('&', first + 1);
  if (second == std::string_view::npos) return unauthorized("it does not have three parts");
  const std::string_view third = text.substr(second + 1);

  const auto type = value_of(text.substr(0, first), "type");
  if (!type) return unauthorized("the first part is not type=, or empty");
  const auto version = value_of(text.substr(first + 1, second - first - 1), "ver");
  if (!version) return unauthorized("the second part is not ver=, or empty");
  // A header that was sent twice arrives as one, joined by a comma.
  const auto signature = value_of(third.substr(0, third.find(',')), "sig");
  if (!signature) return unauthorized("the third part is not sig=, or empty");

  AuthorizationHeader parsed{std::string(*type), std::string(*version), std::string(*signature)};
  std::ranges::transform(parsed.type, parsed.type.begin(), lower);
  const bool too_long = (parsed.type == "master" && header.size() > kMasterHeaderMax) ||
                        (parsed.type == "resource" && header.size() > kResourceHeaderMax);
  if (too_long) return unauthorized("it is too long for its type");
  return parsed;
}

std::string format_authorization(std::string_view signature) {
  std::string header = "type%3Dmaster%26ver%3D1.0%26sig%3D";
  header.reserve(header.size() + signature.size() + 16);
  for (char c : signature) {
    switch (c) {
      case '+':
        header += "%2B";
        break;
      case '/':
        header += "%2F";
        break;
      case '=':
        header += "%3D";
        break;
      default:
        header += c;
    }
  }
  return header;
}

}  // namespace orrery
