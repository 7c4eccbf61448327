#include "protocol/container/client_encryption.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "protocol/base64.h"

namespace orrery {
namespace {

constexpr std::string_view kAlgorithm = "AEAD_AES_256_CBC_HMAC_SHA256";
constexpr std::int64_t kPolicyFormatMax = 2;

bool is_system_path(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"_rid", "_self", "_etag", "_ts"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// The member, if it is a string that is not empty.
const std::string* text_member(const Json& object, std::string_view name) {
  const Json* member = find_member(object, name);
  if (member == nullptr || !member->is_string()) return nullptr;
  const auto& text = member->get_ref<const std::string&>();
  return text.empty() ? nullptr : &text;
}

Result<> check_wrap_metadata(const Json* metadata) {
  if (metadata == nullptr || !metadata->is_object()) {
    return bad_request(
        "A client encryption key needs the object keyWrapMetadata with type, name, value and "
        "algorithm.");
  }
  for (const char* name : {"type", "name", "value", "algorithm"}) {
    const Json* member = find_member(*metadata, name);
    if (member != nullptr && !member->is_string()) {
      return bad_request(fmt::format("keyWrapMetadata.{} must be a string.", name));
    }
  }
  return {};
}

/// The name of a top-level property: clients encrypt those with all that is in them.
Result<std::string> parse_encrypted_path(const Json& entry) {
  const std::string* path = text_member(entry, "path");
  if (path != nullptr) {
    auto names = parse_property_path(*path);
    if (names && names->size() == 1) return std::move(names->front());
  }
  return bad_request(fmt::format(
      "clientEncryptionPolicy.includedPaths: the path '{}' must be that of a top level property, "
      "such as '/ssn'. What lies below it is encrypted with it.",
      path != nullptr ? *path : ""));
}

/// `id` and what is a part of the partition key: the server has to tell values apart, and where
/// documents are.
bool locates_document(const std::string& name, const PartitionKeyDefinition& partition_key) {
  return name == "id" || std::ranges::any_of(partition_key.paths, [&](const auto& path) {
           return path.front() == name;
         });
}

}  // namespace

Result<Json> parse_encryption_key(std::string_view body) {
  if (body.size() > kEncryptionKeyBytesMax) {
    return bad_request(fmt::format("A client encryption key has at most {} bytes; this one has {}.",
                                   kEncryptionKeyBytesMax, body.size()));
  }
  ORRERY_TRY(const Json given, parse_resource_body(body));
  ORRERY_TRY(std::string id, parse_resource_id(given));
  if (text_member(given, "encryptionAlgorithm") == nullptr) {
    return bad_request(fmt::format(
        "A client encryption key needs the string encryptionAlgorithm, as '{}'.", kAlgorithm));
  }
  const std::string* wrapped = text_member(given, "wrappedDataEncryptionKey");
  if (wrapped == nullptr || !base64_decode(*wrapped, Base64Alphabet::Standard)) {
    return bad_request("A client encryption key needs wrappedDataEncryptionKey in base64.");
  }
  ORRERY_TRY(check_wrap_metadata(find_member(given, "keyWrapMetadata")));
  Json key = {{"id", std::move(id)}};
  for (const auto& [name, value] : given.items()) {
    if (!is_system_path(name)) key[name] = value;
  }
  return key;
}

Result<> check_encryption_policy(const Json& policy, const PartitionKeyDefinition& partition_key) {
  const auto fail = [](std::string_view rule) {
    return bad_request(fmt::format("clientEncryptionPolicy{}", rule));
  };
  const Json* paths = find_member(policy, "includedPaths");
  if (paths == nullptr || !paths->is_array()) {
    return fail(" must be an object with the array includedPaths.");
  }
  std::int64_t format = 1;
  if (const Json* member = find_member(policy, "policyFormatVersion")) {
    const auto number = integer_in(*member, 1, kPolicyFormatMax);
    if (!number) return fail(".policyFormatVersion must be 1 or 2.");
    format = *number;
  }
  std::set<std::string> names;
  for (const Json& entry : *paths) {
    ORRERY_TRY(const std::string name, parse_encrypted_path(entry));
    const auto fail_path = [&](std::string_view rule) {
      return fail(fmt::format(".includedPaths: '/{}' {}", name, rule));
    };
    if (!names.insert(name).second) return fail_path("is there twice.");
    if (text_member(entry, "clientEncryptionKeyId") == nullptr) {
      return fail_path("needs the string clientEncryptionKeyId.");
    }
    const Json* type = find_member(entry, "encryptionType");
    if (type == nullptr || !is_one_of(*type, {"Deterministic", "Randomized"})) {
      return fail_path("needs encryptionType, Deterministic or Randomized.");
    }
    const std::string* algorithm = text_member(entry, "encryptionAlgorithm");
    if (algorithm == nullptr || *algorithm != kAlgorithm) {
      return fail_path(fmt::format("needs the encryptionAlgorithm {}.", kAlgorithm));
    }
    if (!locates_document(name, partition_key)) continue;
    if (format < kPolicyFormatMax) {
      return fail_path(
          "is the id or a part of the partition key: it cannot be encrypted with "
          "policyFormatVersion 1. Use 2.");
    }
    if (!is_one_of(*type, {"Deterministic"})) {
      return fail_path(
          "is the id or a part of the partition key: its encryptionType must be Deterministic.");
    }
  }
  return {};
}

}  // namespace orrery
