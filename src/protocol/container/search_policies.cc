#include "protocol/container/search_policies.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/header_name.h"
#include "protocol/keys/partition_key.h"

namespace orrery {
namespace {

constexpr std::int64_t kDimensionsMax = 4096;
constexpr std::int64_t kFlatDimensionsMax = 505;
constexpr std::int64_t kQuantizationBytesMax = 512;
constexpr std::size_t kShardPathsMax = 1;

/// The range of a number, and the range that the service names where it refuses one: that is
/// narrower than the documented one, and clients look for the words.
struct Bounds {
  std::int64_t min;
  std::int64_t max;
  std::int64_t told_min;
  std::int64_t told_max;
};
constexpr Bounds kSearchList = {.min = 10, .max = 500, .told_min = 25, .told_max = 500};

constexpr std::array<std::string_view, 7> kLanguages = {"en-US", "de-DE", "es-ES", "fr-FR",
                                                        "it-IT", "pt-BR", "pt-PT"};
constexpr std::string_view kEnglishNumber = "1033";

/// Of a member that may be any JSON.
std::string shown(const Json* value) {
  if (value == nullptr) return "";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

bool is_path(const Json* value) {
  return value != nullptr && value->is_string() &&
         parse_property_path(value->get_ref<const std::string&>()).has_value();
}

/// The entry of the array `list` whose `path` is that one.
const Json* find_by_path(const Json* list, const Json& path) {
  if (list == nullptr) return nullptr;
  for (const Json& entry : *list) {
    const Json* candidate = find_member(entry, "path");
    if (candidate != nullptr && *candidate == path) return &entry;
  }
  return nullptr;
}

const Json* embeddings_of(const Json* policy) {
  return policy == nullptr ? nullptr : find_member(*policy, "vectorEmbeddings");
}

/// Of entries whose path is known to be a string.
Result<> check_paths_differ(const Json& list, std::string_view name) {
  std::set<std::string_view> paths;
  for (const Json& entry : list) {
    const std::string_view path = entry["path"].get_ref<const std::string&>();
    if (!paths.insert(path).second) {
      return bad_request(fmt::format("{} has the path '{}' twice.", name, path));
    }
  }
  return {};
}

Result<> check_embedding(const Json& embedding) {
  const auto fail = [](std::string_view rule) {
    return bad_request(fmt::format("The Vector Embedding Policy has {}", rule));
  };
  const Json* path = find_member(embedding, "path");
  if (!is_path(path)) return fail(fmt::format("an invalid Path:{}", shown(path)));
  const Json* type = find_member(embedding, "dataType");
  if (type == nullptr || !is_one_of(*type, {"float16", "float32", "int8", "uint8"})) {
    return fail(fmt::format("an invalid DataType:{}. It must be float16, float32, int8 or uint8.",
                            shown(type)));
  }
  const Json* function = find_member(embedding, "distanceFunction");
  if (function == nullptr || !is_one_of(*function, {"cosine", "dotproduct", "euclidean"})) {
    return fail(
        fmt::format("an invalid DistanceFunction:{}. It must be cosine, dotproduct or euclidean.",
                    shown(function)));
  }
  const Json* dimensions = find_member(embedding, "dimensions");
  if (dimensions == nullptr || !dimensions->is_number() || !integer_in(*dimensions, 1, INT64_MAX)) {
    return fail(fmt::format("Dimensions:{}; it should be a positive integer.", shown(dimensions)));
  }
  if (!integer_in(*dimensions, 1, kDimensionsMax)) {
    return fail(fmt::format("Dimensions:{} which is more than the maximum supported value {}.",
                            shown(dimensions), kDimensionsMax));
  }
  return {};
}

Result<> check_range(const Json& index, const char* member, std::string_view name,
                     const Bounds& bounds) {
  const Json* value = find_member(index, member);
  if (value == nullptr || integer_in(*value, bounds.min, bounds.max)) return {};
  return bad_request(fmt::format(
      "The Vector Indexing Policy parameter {} value :: {} is out of range. The allowed range is "
      "between {} and {}.",
      name, shown(value), bounds.told_min, bounds.told_max));
}

Result<> check_shard_key(const Json& index) {
  const Json* paths = find_member(index, "vectorIndexShardKey");
  if (paths == nullptr) return {};
  if (!paths->is_array()) {
    return bad_request(
        "One of the specified inputs is invalid: vectorIndexShardKey must be an array of paths.");
  }
  if (paths->size() > kShardPathsMax) {
    return bad_request(
        fmt::format("The number of shard paths defined in the Vector Indexing Policy: {} exceeds "
                    "the maximum: {}.",
                    paths->size(), kShardPathsMax));
  }
  for (const Json& path : *paths) {
    if (!is_path(&path)) {
      return bad_request(
          fmt::format("The Vector Indexing Policy has an invalid Shard Path: {}.", shown(&path)));
    }
  }
  return {};
}

Result<> check_vector_index(const Json& index, const Json* embeddings) {
  const Json* path = find_member(index, "path");
  if (!is_path(path)) {
    return bad_request(
        fmt::format("The Vector Indexing Policy has an invalid Path:{}", shown(path)));
  }
  const Json* embedding = find_by_path(embeddings, *path);
  if (embedding == nullptr) {
    return bad_request(fmt::format(
        "The Vector Indexing Policy's path::{} not matching in Embedding's path.", shown(path)));
  }
  const Json* type = find_member(index, "type");
  if (type == nullptr || !is_one_of(*type, {"flat", "quantizedFlat", "diskANN"})) {
    return bad_request(fmt::format(
        "The Vector Indexing Policy's Index Type::{} is invalid. It must be flat, quantizedFlat or "
        "diskANN.",
        shown(type)));
  }
  const std::int64_t dimensions = integer_in((*embedding)["dimensions"], 1, kDimensionsMax).value();
  if (is_one_of(*type, {"flat"}) && dimensions > kFlatDimensionsMax) {
    return bad_request(
        fmt::format("The Vector Indexing Policy has Index Type::flat for {} with Dimensions:{} "
                    "which is more than "
                    "the maximum supported value {}.",
                    shown(path), dimensions, kFlatDimensionsMax));
  }
  const Bounds quantization_bytes = {.min = 1,
                                     .max = kQuantizationBytesMax,
                                     .told_min = 1,
                                     .told_max = std::min(dimensions, kQuantizationBytesMax)};
  ORRERY_TRY(
      check_range(index, "quantizationByteSize", "QuantizationByteSize", quantization_bytes));
  ORRERY_TRY(check_range(index, "indexingSearchListSize", "IndexingSearchListSize", kSearchList));
  return check_shard_key(index);
}

/// Whether an entry of `now` has the path of one of `before` but says something else about it.
bool changes_an_entry(const Json* before, const Json* now) {
  if (now == nullptr) return false;
  return std::ranges::any_of(*now, [&](const Json& entry) {
    const Json* old = find_by_path(before, entry["path"]);
    if (old == nullptr) return false;
    // The order of members, and the spelling of numbers, mean nothing.
    return nlohmann::json(*old) != nlohmann::json(entry);
  });
}

Result<> check_language(const Json* language) {
  if (language == nullptr) return {};
  if (language->is_string() &&
      !full_text_language(language->get_ref<const std::string&>()).empty()) {
    return {};
  }
  return bad_request(fmt::format(
      "The Full Text Policy contains an unsupported language {}. Supported languages are: {}.",
      shown(language), fmt::join(kLanguages, ", ")));
}

Result<> check_full_text_policy(const Json& policy) {
  if (!policy.is_object()) return bad_request("fullTextPolicy must be an object.");
  ORRERY_TRY(check_language(find_member(policy, "defaultLanguage")));
  const Json* paths = find_member(policy, "fullTextPaths");
  if (paths == nullptr) return {};
  if (!paths->is_array()) {
    return bad_request(
        "The Full Text Policy contains invalid syntax: fullTextPaths must be an array.");
  }
  for (const Json& entry : *paths) {
    const Json* path = find_member(entry, "path");
    if (!is_path(path)) {
      return bad_request(
          fmt::format("The Full Text Policy contains an invalid Path: {}", shown(path)));
    }
    ORRERY_TRY(check_language(find_member(entry, "language")));
  }
  return {};
}

}  // namespace

Result<> check_vector_policies(const Json* embedding_policy, const Json* indexes) {
  const Json* embeddings = embeddings_of(embedding_policy);
  if (embedding_policy != nullptr) {
    if (embeddings == nullptr || !embeddings->is_array()) {
      return bad_request(
          "vectorEmbeddingPolicy must be an object with the array vectorEmbeddings.");
    }
    for (const Json& embedding : *embeddings) ORRERY_TRY(check_embedding(embedding));
    ORRERY_TRY(check_paths_differ(*embeddings, "vectorEmbeddings"));
  }
  if (indexes == nullptr) return {};
  if (!indexes->is_array()) return bad_request("indexingPolicy.vectorIndexes must be an array.");
  for (const Json& index : *indexes) ORRERY_TRY(check_vector_index(index, embeddings));
  return check_paths_differ(*indexes, "vectorIndexes");
}

Result<> check_vector_change(const Json* old_policy, const Json* old_indexes,
                             const Json* new_policy, const Json* new_indexes) {
  if (changes_an_entry(old_indexes, new_indexes)) {
    return bad_request(
        "Paths in existing vector indexing policy cannot be modified in Collection Replace. They "
        "can "
        "only be added or removed.");
  }
  if (changes_an_entry(embeddings_of(old_policy), embeddings_of(new_policy))) {
    return bad_request(
        "Paths in existing embedding policy cannot be modified in Collection Replace. They can "
        "only "
        "be added or removed.");
  }
  return {};
}

std::string_view full_text_language(std::string_view name) {
  if (name == kEnglishNumber) return kLanguages.front();
  const auto found = std::ranges::find_if(
      kLanguages, [&](std::string_view language) { return equal_ignoring_case(language, name); });
  return found == kLanguages.end() ? std::string_view() : *found;
}

Result<> check_full_text_policies(const Json* policy, const Json* indexes) {
  if (policy != nullptr) ORRERY_TRY(check_full_text_policy(*policy));
  if (indexes == nullptr) return {};
  if (!indexes->is_array()) return bad_request("indexingPolicy.fullTextIndexes must be an array.");
  for (std::size_t i = 0; i < indexes->size(); ++i) {
    const Json* path = find_member((*indexes)[i], "path");
    if (path == nullptr) {
      return bad_request(
          fmt::format("Missing path in full-text index specification at index ({})", i));
    }
    if (!is_path(path)) {
      return bad_request(
          fmt::format("Full-text index specification at index ({}) contains invalid path '{}'", i,
                      shown(path)));
    }
  }
  return {};
}

}  // namespace orrery
