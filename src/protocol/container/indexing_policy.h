// Which properties of documents a container indexes, and how its clients are told.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/container/index_path.h"
#include "protocol/wire/resource_body.h"

namespace orrery {

/// The member `indexingPolicy` of a container: validated and completed. A value.
class IndexingPolicy {
 public:
  /// The default policy: everything is indexed.
  IndexingPolicy();

  /// From what a client sent; nullptr, and an object without members, is the default. BadRequest
  /// names the member and the rule. Vector and full-text indexes are only looked at together with
  /// their policies: search_policies.h.
  static Result<IndexingPolicy> parse(const Json* policy);

  /// In the form that is stored, which parse() takes: what the client gave, the indexing mode and
  /// the orders of composite indexes in lower case, and defaults that hold for every API version.
  const Json& stored() const { return policy_; }

  /// As a client of `api_version` expects it. Below 2018-09-17 every included path lists its
  /// indexes, one for numbers and one for strings at least. From then on it lists only spatial
  /// ones, and
  /// `_etag` is shown among the excluded paths.
  Json to_wire(std::string_view api_version) const;

  bool none() const { return none_; }
  bool lazy() const { return lazy_; }

  /// Whether the property at `path` (member names; array elements are "[]") is indexed. The longest
  /// path of the policy that covers it decides; `/?` beats `/*` of the same length. `id` and `_ts`
  /// are always indexed unless the mode is none.
  bool indexes(const std::vector<std::string_view>& path) const;
  /// True when every leaf is, but for `_etag`, as by default: then indexes() need not be asked.
  bool indexes_everything() const { return indexes_everything_; }

  /// The composite indexes that it lists.
  std::vector<IndexSpec> composite_indexes() const;
  /// The paths of the spatial indexes that it lists, without their wildcards; none of `/*` alone.
  std::vector<IndexPath> spatial_paths() const;
  /// Indexes that the policy asks for by name: its composite ones, its spatial ones, which are of
  /// `spatial_kind`, and included paths that end in `/?` and have no wildcard. At most
  /// kNamedIndexesMax, since each has its price with every write; queries ask for others when they
  /// need them.
  std::vector<IndexSpec> named_indexes(IndexKind spatial_kind) const;
  static constexpr std::size_t kNamedIndexesMax = 32;
  /// Whether there may be such an index: over a path that is indexed, or a composite one that the
  /// policy lists, or a spatial one over a path that a spatial index of the policy covers.
  bool allows(const IndexSpec& index) const;

  /// The member, or nullptr. For search_policies.h.
  /// Null when there are none; likewise below.
  const Json* spatial_indexes() const { return find_member(policy_, "spatialIndexes"); }
  const Json* vector_indexes() const { return find_member(policy_, "vectorIndexes"); }
  const Json* full_text_indexes() const { return find_member(policy_, "fullTextIndexes"); }

 private:
  explicit IndexingPolicy(Json policy) : policy_(std::move(policy)) {}

  /// A path of the policy: `/a/[]/?` has the names a and [], and covers just the scalar there;
  /// `/a/*` covers a and all below.
  struct Rule {
    std::vector<std::string> names;
    bool covers_below = false;
    bool included = false;
    bool is_tuple = false;  ///< `/a/[]/{b, c}/?`: an index of its own, not of a property

    bool same_path(const Rule& other) const {
      return covers_below == other.covers_below && is_tuple == other.is_tuple &&
             names == other.names;
    }
    bool covers(const std::vector<std::string_view>& path) const;
  };
  static Result<Rule> parse_path(const Json& entry, std::string_view list, bool included);
  Result<> parse_paths(const Json& given);
  Result<> parse_list(const Json* list, std::string_view name, bool included);
  Result<> parse_spatial_indexes(Json& spatial_indexes);
  static IndexPath path_of(const Rule& rule);
  static bool is_root(const Rule& rule) { return rule.names.empty() && rule.covers_below; }
  static bool is_etag(const Rule& rule);
  bool has_root(bool included) const;

  Json policy_;
  std::vector<Rule> rules_;
  std::vector<Rule> spatial_rules_;
  bool none_ = false;
  bool lazy_ = false;
  bool indexes_everything_ = true;
};

}  // namespace orrery
