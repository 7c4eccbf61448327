// The query plan: what a client that goes to every range by itself has to do, and the text that it
// sends to each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/keys/epk.h"
#include "query/bind/settings.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// A part of the hash space that a query can find anything in.
struct QueryRange {
  Epk min;
  Epk max;
  bool is_min_inclusive = true;
  bool is_max_inclusive = false;
  bool operator==(const QueryRange&) const = default;
};

/// From what WHERE says of the partition key: sorted, disjoint; never empty. Perhaps more than is
/// needed, never less. Where nothing can be found it is the empty point at the beginning of the
/// space: one range answers, since an aggregate over nothing is an answer, too. The tree is as the
/// parser made it. Of the settings, computed properties matter: they hide what a document has. The
/// two zeros, which are equal but not the same key, are two points.
std::vector<QueryRange> query_ranges(const Query& query, const Parameters& parameters,
                                     const PartitionKeyDefinition& definition,
                                     const Settings& settings);

/// The partition keys that WHERE pins a query to.
struct KeyPin {
  /// The full key, if there is only one value that it can have: then the query needs no other
  /// logical partition. Of a zero both, the one without a sign first; with several levels, all that
  /// are equal.
  std::vector<PartitionKey> keys;
  /// There is none: no document passes. One range answers as well as all of them.
  bool finds_nothing = false;
  /// WHERE says nothing else: every document of these keys passes.
  bool is_whole_filter = false;
};
/// From the same as query_ranges.
KeyPin key_pin(const Query& query, const Parameters& parameters,
               const PartitionKeyDefinition& definition, const Settings& settings);

/// Whether all that the select list wants of documents is how many pass WHERE: it has nothing but
/// COUNT of constants, over whole documents. The tree is as the parser made it.
bool only_counts(const Query& query);

struct PlanRequest {
  std::string_view text;
  const Parameters& parameters;
  const Settings& settings;
  const PartitionKeyDefinition& definition;
  /// As the client announces them: names, in any case, separated by commas. Nothing: it did not
  /// say, and is taken to know all.
  std::optional<std::string_view> features;
  /// For make_first_chance_plan: the client would go to all ranges at the same time, also for what
  /// the service would serve.
  bool is_parallel = false;
};

/// The answer to a plan request, as JSON text. BadRequest when the query is wrong, needs what the
/// client does not know, or cannot be put together from the answers of several ranges.
Result<std::string> make_plan(const PlanRequest& request);

/// The same for clients of 2017, which take it from the error 1004 and know only few of its
/// members. Nothing when the service would serve the query itself: plain filters, joins,
/// subqueries. BadRequest for what it refuses altogether. Ignores the features that the client
/// announces.
Result<std::optional<std::string>> make_first_chance_plan(const PlanRequest& request);

/// ORDER BY RANK, taken apart: what a client runs on each range, and how it puts the answers
/// together. The server does the same where a client leaves it to the server.
struct RankPlan {
  /// Over all ranges: one row {"documentCount":n,"fullTextStatistics":[{"totalWordCount":n,
  /// "hitCounts":[n,…]},…]}, one element for each full-text component. To be added up.
  std::string statistics_query;
  bool needs_statistics = false;
  struct Component {
    /// Its best rows, {"_rid","payload","componentScores"}, with placeholders: see
    /// with_statistics. Scores are one number for each component.
    std::string query;
    /// Its weight is negative: what has the smallest of its scores is best. Otherwise the largest.
    bool is_ascending = false;
  };
  std::vector<Component> components;
  std::vector<double> weights;  ///< one each, absolute; empty: all 1
  std::optional<std::uint64_t> skip;
  std::optional<std::uint64_t> take;
};
/// Of a query with ORDER BY RANK, as the parser made it. BadRequest where what is to be ranked is
/// not a score, weights are not one number for each, or DISTINCT, GROUP BY or aggregates are there.
Result<RankPlan> make_rank_plan(const Query& query, std::string_view text,
                                const Parameters& parameters);

/// The result of the statistics query over all documents.
struct RankStatistics {
  std::uint64_t document_count = 0;
  struct Words {
    std::uint64_t total = 0;
    std::vector<std::uint64_t> hits;  ///< documents that have the term, for each term
  };
  std::vector<Words> full_text;  ///< one for each full-text component, in their order
};
/// The text of a component with numbers in place of its placeholders.
std::string with_statistics(std::string_view component_query, const RankStatistics& statistics);

}  // namespace orrery::query
