#include "protocol/container/indexing_policy.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include <fmt/format.h>

#include "base/assert.h"
#include "protocol/keys/partition_key.h"

namespace orrery {
namespace {

constexpr std::size_t kPathsMax = 1500;
constexpr std::size_t kCompositePathsMin = 2;
constexpr std::size_t kCompositePathsMax = 8;
constexpr std::string_view kRootPath = "/*";
constexpr std::string_view kEtagPath = "/\"_etag\"/?";
constexpr std::string_view kArrayElement = "[]";

// Clients before composite and spatial indexes know the kinds Hash and Range.
constexpr std::string_view kFirstVersionWithoutIndexKinds = "2018-09-17";

bool lists_index_kinds(std::string_view api_version) {
  return !api_version.empty() && api_version < kFirstVersionWithoutIndexKinds;
}

Error bad_path(std::string_view list, std::string_view path) {
  return bad_request(fmt::format(
      "indexingPolicy.{}: The indexing path '{}' could not be accepted. Please ensure that the "
      "path "
      "is a valid path: segments separated by '/', quotes around labels with special characters, "
      "and '/?' or '/*' at the end.",
      list, path));
}

/// One segment of an index path, which begins at `at`; moves `at` behind it. Nothing if it is not
/// valid.
std::optional<std::string> take_segment(std::string_view path, std::size_t& at) {
  const char first = path[at];
  if (first == '"' || first == '\'') {
    std::string name;
    for (++at; at < path.size() && path[at] != first; ++at) {
      const bool escaped = path[at] == '\\' && at + 1 < path.size() &&
                           (path[at + 1] == first || path[at + 1] == '\\');
      if (escaped) ++at;
      name += path[at];
    }
    if (at >= path.size() || name.empty()) return std::nullopt;
    ++at;
    return name;
  }
  if (first == '{') {
    const std::size_t end = path.find('}', at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view tuple = path.substr(at, end + 1 - at);
    at = end + 1;
    return std::string(tuple);
  }
  const std::size_t end = std::min(path.find('/', at), path.size());
  const std::string_view name = path.substr(at, end - at);
  at = end;
  if (name == kArrayElement) return std::string(name);
  const auto is_special = [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F ||
           std::string_view("\"'*?[]{}\\").find(c) != std::string_view::npos;
  };
  if (name.empty() || std::ranges::any_of(name, is_special)) return std::nullopt;
  return std::string(name);
}

Result<> check_indexes(const Json* indexes, std::string_view path) {
  if (indexes == nullptr) return {};
  const auto fail = [&](std::string_view rule) {
    return bad_request(
        fmt::format("indexingPolicy.includedPaths: indexes of '{}': {}", path, rule));
  };
  if (!indexes->is_array()) return fail("must be an array.");
  for (const Json& index : *indexes) {
    const Json* kind = find_member(index, "kind");
    const Json* data_type = find_member(index, "dataType");
    const Json* precision = find_member(index, "precision");
    if (kind == nullptr || !is_one_of(*kind, {"Hash", "Range", "Spatial"})) {
      return fail("kind must be Hash, Range or Spatial.");
    }
    if (data_type == nullptr || !is_one_of(*data_type, {"Number", "String", "Point", "LineString",
                                                        "Polygon", "MultiPolygon"})) {
      return fail("dataType must be Number, String, Point, LineString, Polygon or MultiPolygon.");
    }
    if (precision != nullptr && !integer_in(*precision, -1, 100)) {
      return fail("precision must be an integer from -1 to 100.");
    }
  }
  return {};
}

Result<> check_composite_indexes(Json& composites) {
  const auto fail = [](std::string_view rule) {
    return bad_request(fmt::format("indexingPolicy.compositeIndexes: {}", rule));
  };
  if (!composites.is_array()) return fail("must be an array of arrays.");
  for (Json& composite : composites) {
    if (!composite.is_array()) return fail("must be an array of arrays.");
    if (composite.size() < kCompositePathsMin || composite.size() > kCompositePathsMax) {
      return fail(fmt::format("a composite index must have {} to {} paths.", kCompositePathsMin,
                              kCompositePathsMax));
    }
    for (Json& part : composite) {
      const Json* path = find_member(part, "path");
      if (path == nullptr || !path->is_string()) return fail("a path must be a string.");
      const auto& text = path->get_ref<const std::string&>();
      if (!parse_property_path(text)) {
        return bad_request(fmt::format(
            "indexingPolicy.compositeIndexes: The path '{}' could not be accepted. A path of a "
            "composite index begins with '/' and has no '?', '*' or '[]'.",
            text));
      }
      const Json* order = find_member(part, "order");
      if (order != nullptr && !is_one_of(*order, {"ascending", "descending"})) {
        return fail("order must be ascending or descending.");
      }
      // In lower case, since later comparisons are case-sensitive.
      std::string word =
          order != nullptr ? lower_case(order->get_ref<const std::string&>()) : "ascending";
      part["order"] = std::move(word);
    }
  }
  return {};
}

Result<> check_bounding_box(const Json* box) {
  if (box == nullptr) return {};
  for (const char* side : {"xmin", "ymin", "xmax", "ymax"}) {
    const Json* number = find_member(*box, side);
    if (number == nullptr || !number->is_number()) {
      return bad_request(
          "indexingPolicy.spatialIndexes: boundingBox must have the numbers xmin, ymin, xmax and "
          "ymax.");
    }
  }
  return {};
}

/// The defaults that clients of the old API versions look for, behind what is there.
void add_default_indexes(Json& included_path) {
  const Json range_of_numbers = {{"kind", "Range"}, {"dataType", "Number"}, {"precision", -1}};
  const Json hash_of_strings = {{"kind", "Hash"}, {"dataType", "String"}, {"precision", 3}};
  const Json* given = find_member(included_path, "indexes");
  Json indexes = given != nullptr ? *given : Json::array();
  bool numbers = false;
  bool strings = false;
  for (Json& index : indexes) {
    numbers |= is_one_of(index["dataType"], {"Number"});
    strings |= is_one_of(index["dataType"], {"String"});
    if (find_member(index, "precision") == nullptr) {
      if (is_one_of(index["kind"], {"Range"})) index["precision"] = -1;
      if (is_one_of(index["kind"], {"Hash"})) index["precision"] = 3;
    }
  }
  if (!numbers) indexes.push_back(range_of_numbers);
  if (!strings) indexes.push_back(hash_of_strings);
  included_path["indexes"] = std::move(indexes);
}

/// Hides indexes of the old kinds from newer clients, also where given: every path has all.
void keep_spatial_indexes(Json& included_path) {
  const Json* given = find_member(included_path, "indexes");
  Json spatial = Json::array();
  if (given != nullptr) {
    for (const Json& index : *given) {
      if (is_one_of(index["kind"], {"Spatial"})) spatial.push_back(index);
    }
  }
  included_path.erase("indexes");
  if (!spatial.empty()) included_path["indexes"] = std::move(spatial);
}

}  // namespace

IndexingPolicy::IndexingPolicy() {
  auto policy = parse(nullptr);
  ORRERY_ASSERT(policy.has_value());
  *this = std::move(*policy);
}

bool IndexingPolicy::is_etag(const Rule& rule) {
  return !rule.covers_below && !rule.is_tuple && rule.names.size() == 1 && rule.names[0] == "_etag";
}

bool IndexingPolicy::has_root(bool included) const {
  return std::ranges::any_of(
      rules_, [&](const Rule& rule) { return rule.included == included && is_root(rule); });
}

Result<IndexingPolicy::Rule> IndexingPolicy::parse_path(const Json& entry, std::string_view list,
                                                        bool included) {
  const Json* member = find_member(entry, "path");
  if (member == nullptr || !member->is_string()) {
    return bad_request(fmt::format(
        "indexingPolicy.{}: every entry must be an object with the string 'path'.", list));
  }
  const std::string_view path = member->get_ref<const std::string&>();
  Rule rule;
  rule.included = included;
  if (path == "/") {  // Old clients write the root so.
    rule.covers_below = true;
    return rule;
  }
  std::string_view names = path;
  if (path.ends_with("/*")) {
    rule.covers_below = true;
  } else if (!path.ends_with("/?")) {
    return bad_path(list, path);
  }
  names.remove_suffix(2);
  for (std::size_t at = 0; at < names.size();) {
    if (names[at++] != '/' || at == names.size()) return bad_path(list, path);
    rule.is_tuple |= names[at] == '{';
    auto name = take_segment(names, at);
    if (!name) return bad_path(list, path);
    rule.names.push_back(std::move(*name));
  }
  return rule;
}

Result<> IndexingPolicy::parse_list(const Json* list, std::string_view name, bool included) {
  policy_[std::string(name)] = list != nullptr ? *list : Json::array();
  if (list == nullptr) return {};
  if (!list->is_array()) {
    return bad_request(fmt::format("indexingPolicy.{} must be an array.", name));
  }
  // One more, since clients send back the excluded `_etag` that they were shown.
  if (rules_.size() + list->size() > kPathsMax + 1) {
    return bad_request(fmt::format(
        "indexingPolicy: there must not be more than {} included and excluded paths.", kPathsMax));
  }
  for (const Json& entry : *list) {
    ORRERY_TRY(Rule rule, parse_path(entry, name, included));
    if (included) {
      ORRERY_TRY(check_indexes(find_member(entry, "indexes"),
                               entry["path"].get_ref<const std::string&>()));
    }
    rules_.push_back(std::move(rule));
  }
  return {};
}

Result<> IndexingPolicy::parse_paths(const Json& given) {
  const Json* included = find_member(given, "includedPaths");
  const Json* excluded = find_member(given, "excludedPaths");
  ORRERY_TRY(parse_list(included, "includedPaths", true));
  const std::size_t included_count = rules_.size();
  ORRERY_TRY(parse_list(excluded, "excludedPaths", false));

  if (none_) {
    if (!rules_.empty()) {
      return bad_request(
          "indexingPolicy: with indexingMode 'none' there must be no included or excluded paths.");
    }
    return {};
  }
  for (std::size_t i = 0; i < included_count; ++i) {
    for (std::size_t j = included_count; j < rules_.size(); ++j) {
      if (rules_[i].same_path(rules_[j])) {
        return bad_request(
            fmt::format("indexingPolicy: the path '{}' is both included and excluded.",
                        policy_["includedPaths"][i]["path"].get_ref<const std::string&>()));
      }
    }
  }
  if (!has_root(true) && !has_root(false)) {
    // Clients that leave out what is included mean all but what they exclude; those that send an
    // empty list beside it have said that it is nothing. Two empty lists are nobody's wish.
    if (included_count > 0 || (included != nullptr && !rules_.empty())) {
      return bad_request(
          "indexingPolicy: The special mandatory indexing path \"/*\" is not provided in any of "
          "the "
          "path type sets. Please provide this path in one of the sets.");
    }
    policy_["includedPaths"].push_back({{"path", kRootPath}});
    rules_.push_back({.names = {}, .covers_below = true, .included = true, .is_tuple = false});
  }
  return {};
}

Result<IndexingPolicy> IndexingPolicy::parse(const Json* policy) {
  const Json given = policy != nullptr ? *policy : Json::object();
  if (!given.is_object()) return bad_request("indexingPolicy must be an object.");

  IndexingPolicy result{Json::object()};
  std::string mode = "consistent";
  if (const Json* member = find_member(given, "indexingMode")) {
    if (!is_one_of(*member, {"consistent", "lazy", "none"})) {
      return bad_request("indexingPolicy.indexingMode must be 'consistent', 'lazy' or 'none'.");
    }
    mode = lower_case(member->get_ref<const std::string&>());
  }
  result.none_ = mode == "none";
  result.lazy_ = mode == "lazy";

  bool automatic = !result.none_;
  if (const Json* member = find_member(given, "automatic")) {
    if (!member->is_boolean()) {
      return bad_request("indexingPolicy.automatic must be true or false.");
    }
    automatic = member->get<bool>();
    if (automatic && result.none_) {
      return bad_request("indexingPolicy.automatic must be false when indexingMode is 'none'.");
    }
  }
  result.policy_["indexingMode"] = mode;
  result.policy_["automatic"] = automatic;
  ORRERY_TRY(result.parse_paths(given));
  result.indexes_everything_ =
      !result.none_ && std::ranges::all_of(result.rules_, [](const Rule& rule) {
        return rule.included || is_etag(rule);
      });

  for (const auto& [name, value] : given.items()) {
    if (result.policy_.contains(name) || value.is_null()) continue;
    Json& member = result.policy_[name] = value;
    if (name == "compositeIndexes") ORRERY_TRY(check_composite_indexes(member));
    if (name == "spatialIndexes") ORRERY_TRY(result.parse_spatial_indexes(member));
  }
  return result;
}

Result<> IndexingPolicy::parse_spatial_indexes(Json& spatial_indexes) {
  const auto fail = [](std::string_view rule) {
    return bad_request(fmt::format("indexingPolicy.spatialIndexes: {}", rule));
  };
  if (!spatial_indexes.is_array()) return fail("must be an array.");
  for (Json& index : spatial_indexes) {
    ORRERY_TRY(Rule rule, parse_path(index, "spatialIndexes", true));
    spatial_rules_.push_back(std::move(rule));
    ORRERY_TRY(check_bounding_box(find_member(index, "boundingBox")));
    const Json* types = find_member(index, "types");
    if (types == nullptr) {
      index["types"] = {"Point", "LineString", "Polygon", "MultiPolygon"};
      continue;
    }
    if (!types->is_array() || types->empty() || !std::ranges::all_of(*types, [](const Json& type) {
          return is_one_of(type, {"Point", "LineString", "Polygon", "MultiPolygon"});
        })) {
      return fail("types must be an array of Point, LineString, Polygon and MultiPolygon.");
    }
  }
  return {};
}

Json IndexingPolicy::to_wire(std::string_view api_version) const {
  Json policy = policy_;
  for (Json& path : policy["includedPaths"]) {
    if (lists_index_kinds(api_version)) {
      add_default_indexes(path);
    } else {
      keep_spatial_indexes(path);
    }
  }
  const bool shows_etag = !none_ && !lists_index_kinds(api_version);
  if (shows_etag && std::ranges::none_of(rules_, is_etag)) {
    policy["excludedPaths"].push_back({{"path", kEtagPath}});
  }
  return policy;
}

bool IndexingPolicy::Rule::covers(const std::vector<std::string_view>& path) const {
  if (is_tuple || path.size() < names.size()) return false;
  if (!covers_below && path.size() != names.size()) return false;
  return std::ranges::equal(names, path | std::views::take(names.size()));
}

bool IndexingPolicy::indexes(const std::vector<std::string_view>& path) const {
  if (none_) return false;
  if (indexes_everything_) return true;
  if (path.size() == 1 && (path[0] == "id" || path[0] == "_ts")) return true;
  const Rule* decisive = nullptr;
  for (const Rule& rule : rules_) {
    if (!rule.covers(path)) continue;
    const bool beats = decisive == nullptr || rule.names.size() > decisive->names.size() ||
                       (rule.names.size() == decisive->names.size() && !rule.covers_below);
    if (beats) decisive = &rule;
  }
  return decisive != nullptr && decisive->included;
}

std::vector<IndexSpec> IndexingPolicy::composite_indexes() const {
  std::vector<IndexSpec> specs;
  const Json* lists = none_ ? nullptr : find_member(policy_, "compositeIndexes");
  if (lists == nullptr) return specs;
  for (const Json& list : *lists) {
    IndexSpec spec;
    for (const Json& each : list) {
      const auto names = parse_property_path(each.at("path").get_ref<const std::string&>());
      if (!names) break;
      IndexPath path;
      for (const std::string& name : *names) path.steps.push_back({.name = name});
      const Json* order = find_member(each, "order");
      const bool is_descending = order != nullptr && *order == "descending";
      spec.parts.push_back({std::move(path), is_descending});
    }
    const bool is_known = std::ranges::find(specs, spec) != specs.end();
    if (spec.parts.size() == list.size() && !is_known) specs.push_back(std::move(spec));
  }
  return specs;
}

IndexPath IndexingPolicy::path_of(const Rule& rule) {
  IndexPath path;
  for (const std::string& name : rule.names) {
    const bool is_element = name == kArrayElement;
    path.steps.push_back({.name = is_element ? std::string() : name, .is_element = is_element});
  }
  return path;
}

std::vector<IndexPath> IndexingPolicy::spatial_paths() const {
  std::vector<IndexPath> paths;
  if (none_) return paths;
  for (const Rule& rule : spatial_rules_) {
    if (!rule.is_tuple && !rule.names.empty()) paths.push_back(path_of(rule));
  }
  return paths;
}

std::vector<IndexSpec> IndexingPolicy::named_indexes(IndexKind spatial_kind) const {
  std::vector<IndexSpec> found = composite_indexes();
  const auto add = [&](IndexSpec spec) {
    if (std::ranges::find(found, spec) == found.end()) found.push_back(std::move(spec));
  };
  for (IndexPath& path : spatial_paths()) add(IndexSpec::single(std::move(path), spatial_kind));
  for (const Rule& rule : rules_) {
    if (!rule.included || rule.covers_below || rule.is_tuple || rule.names.empty()) continue;
    add(IndexSpec::single(path_of(rule)));
  }
  if (found.size() > kNamedIndexesMax) found.resize(kNamedIndexesMax);
  return found;
}

bool IndexingPolicy::allows(const IndexSpec& index) const {
  if (index.is_composite()) {
    const auto composites = composite_indexes();
    return std::ranges::find(composites, index) != composites.end();
  }
  std::vector<std::string_view> names;
  for (const IndexPath::Step& step : index.parts.front().path.steps) {
    names.push_back(step.is_element ? kArrayElement : std::string_view(step.name));
  }
  if (!index.is_spatial()) return indexes(names);
  return !none_ &&
         std::ranges::any_of(spatial_rules_, [&](const Rule& rule) { return rule.covers(names); });
}

}  // namespace orrery
