#include "executor/access_planner.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "executor/index_match.h"
#include "executor/parallel_scan.h"
#include "executor/sources.h"
#include "executor/vector_search.h"
#include "index/log_cursor.h"
#include "index/reader.h"
#include "partition/read/document_cursor.h"

namespace orrery::executor {

using index::Candidate;
using partition::DocumentCursor;
using query::PathCondition;
using query::PreparedQuery;
using query::QueryAccess;
using Candidates = std::vector<Candidate>;
using Shape = PreparedQuery::Shape;

namespace {

/// More documents than this part of all are read faster by reading all: one after the other.
constexpr std::uint64_t kWorthwhilePart = 4;
/// Each page of a Stream looks its list up again: for a page of so many rows it must pay, where an
/// entry costs a tenth of a document.
constexpr double kStreamRows = 1000;
constexpr double kEntriesPerDocument = 10;
/// About so many rows are wanted of an Ordered query at a time.
constexpr double kOrderedRows = 100;
/// Lists that are no longer than this are looked for first.
constexpr std::size_t kShortListMax = 1000;
/// A list that is so short needs no other one to make it shorter.
constexpr std::size_t kVeryShortListMax = 20;
constexpr std::size_t kListsMax = 3;
/// Documents of one partition key: if there are no more, all of them are looked at.
constexpr std::size_t kOwnDocumentsMax = 1000;
/// Entries of one partition key that are counted without a look at the clock: some 50 ms.
constexpr std::size_t kCountedEntriesMax = 100'000;
/// Ids that are looked up one by one.
constexpr std::size_t kIdsMax = 100;

/// An index that is there.
struct Index {
  std::uint32_t id;
  std::string text;
  IndexSpec spec;
};

/// Where a list of candidates comes from: of several lookups together.
struct ListSource {
  struct Lookup {
    const Index* index;
    ConditionMatch match;
  };
  std::vector<Lookup> lookups;
};

/// The id in the sort key of a string that is not cut; nothing for any other.
std::optional<std::string> string_in(std::string_view key) {
  if (key.empty() || key.front() != static_cast<char>(json::SortTag::String)) return std::nullopt;
  std::string text;
  for (std::size_t at = 1; at + 1 < key.size(); ++at) {
    if (key[at] == '\0') {
      if (key[at + 1] == '\x01') return text;
      if (key[at + 1] != '\xFF') return std::nullopt;
      text.push_back('\0');
      ++at;
    } else {
      text.push_back(key[at]);
    }
  }
  return std::nullopt;
}

/// Chooses the cheapest way to the documents, by estimates of what each reads.
class AccessPlanner {
 public:
  AccessPlanner(const SourceScope& scope, const PreparedQuery& query, const QueryAccess& access)
      : scope_(scope), access_(access), reader_(&query) {
    while (reader_->inner()) reader_ = reader_->inner().get();
    shape_ = reader_->shape();
  }

  Result<std::unique_ptr<DocumentSource>> make() {
    if (access_.is_empty) return over({}, SourceReport::Way::Nothing);
    if (scope_.choice == AccessChoice::Scan) return scan();
    if (is_of_one_key()) {
      if (scope_.only_counts) {
        ORRERY_TRY(auto counted, count());
        if (counted) return std::move(counted);
      }
      ORRERY_TRY(auto named, find_named());
      if (named) {
        report_.indexes = {"/id"};
        return over(std::move(*named), SourceReport::Way::Index);
      }
      ORRERY_TRY(own_, partition::find_in_key(scope_.snapshot, scope_.partition, scope_.filter,
                                              kOwnDocumentsMax));
    }
    ORRERY_TRY(read_indexes());
    if (scope_.vectors != nullptr && !own_) {
      ORRERY_TRY(auto similar, find_similar());
      if (similar) return std::move(similar);
    }
    auto ordered = find_ordered();
    if (ordered && scope_.choice == AccessChoice::Index) return over(std::move(*ordered));
    ORRERY_TRY(auto candidates,
               find_list(count_max(ordered.has_value()), ordered ? ordered->first : nullptr));
    if (candidates) return over(std::move(*candidates), SourceReport::Way::Index);
    if (own_) return over(std::move(*own_), SourceReport::Way::Scan);
    if (ordered) return over(std::move(*ordered));
    return scan();
  }

 private:
  using Ordered = std::pair<const Index*, OrderMatch>;

  bool is_of_one_key() const { return scope_.filter.partition_key && scope_.filter.epks; }

  /// Of one key: its entries tell how many documents it has. Null when they are too many to be gone
  /// over at once.
  Result<std::unique_ptr<DocumentSource>> count() {
    const std::size_t max = std::min(kCountedEntriesMax, scope_.entries_max);
    ORRERY_TRY(const auto documents,
               partition::count_in_key(scope_.snapshot, scope_.partition, scope_.filter, max));
    if (!documents) return std::unique_ptr<DocumentSource>();
    report_.way = SourceReport::Way::Index;
    report_.indexes = {"/id"};
    report_.entries_read = *documents;
    return make_count_source(*documents, std::move(report_));
  }

  std::unique_ptr<DocumentSource> over(Candidates candidates, SourceReport::Way way) {
    if (shape_ == Shape::Stream) {
      const auto begin = std::ranges::upper_bound(candidates, scope_.after, {}, &Candidate::number);
      candidates.erase(candidates.begin(), begin);
    }
    report_.way = way;
    return source_over(DocumentCursor::over(scope_.snapshot, scope_.partition,
                                            std::move(candidates), scope_.filter));
  }

  std::unique_ptr<DocumentSource> over(Ordered ordered) {
    report_.way = SourceReport::Way::OrderedIndex;
    report_.indexes = {ordered.first->text};
    return make_ordered_index_source(scope_, ordered.first->id, std::move(ordered.second),
                                     std::move(report_));
  }

  Result<std::unique_ptr<DocumentSource>> scan() {
    if (scope_.documents > scope_.entries_max) return too_many_entries();
    report_.way = SourceReport::Way::Scan;
    if (!scope_.filter.partition_key && ParallelScan::is_for(scope_, *reader_)) {
      return ParallelScan::open(scope_, *reader_);
    }
    // Of one key, numbers lead to its own entries.
    if (shape_ == Shape::Stream || is_of_one_key()) {
      return source_over(DocumentCursor::by_number(
          scope_.snapshot, scope_.partition,
          shape_ == Shape::Stream ? scope_.after : DocumentNumber{}, scope_.filter));
    }
    return source_over(DocumentCursor::in_log(scope_.snapshot, scope_.partition, scope_.filter));
  }

  std::unique_ptr<DocumentSource> source_over(DocumentCursor cursor) {
    return make_cursor_source(std::move(cursor), shape_ == Shape::Stream, std::move(report_));
  }

  /// Of one key: documents whose ids WHERE names.
  Result<std::optional<Candidates>> find_named() {
    const IndexPath path{{{.name = "id", .is_element = false}}};
    const auto condition = std::ranges::find_if(access_.conditions, [&](const auto& each) {
      return each.path == path && each.is_equality && each.intervals.size() <= kIdsMax;
    });
    std::optional<Candidates> found;
    if (condition == access_.conditions.end()) return found;
    found.emplace();
    for (const json::KeyInterval& interval : condition->intervals) {
      const auto id = string_in(interval.low);
      if (!id) continue;  // No document has such an id.
      ++report_.entries_read;
      ORRERY_TRY(const auto named,
                 partition::find_by_id(scope_.snapshot, scope_.partition, scope_.filter, *id));
      if (named) found->push_back(*named);
    }
    std::ranges::sort(*found, {}, &Candidate::number);
    return found;
  }

  Result<> read_indexes() {
    storage::IndexRecords records;
    if (scope_.indexes) {
      records = *scope_.indexes;
    } else {
      ORRERY_TRY(const auto head, index::head_in(scope_.snapshot, scope_.partition));
      records = head.indexes;
    }
    if (!records) return {};
    for (const storage::IndexRecord& record : *records) {
      if (!record.is_complete()) continue;
      if (auto spec = IndexSpec::parse(record.spec)) {
        indexes_.push_back({record.id, record.spec, std::move(*spec)});
      }
    }
    return {};
  }

  /// The index that yields the order, with the most conditions bound.
  std::optional<Ordered> find_ordered() const {
    std::optional<Ordered> best;
    if (shape_ != Shape::Ordered) return best;
    for (const Index& index : indexes_) {
      auto match = match_order(index.spec, access_.conditions, access_.order, scope_.from_key);
      if (!match || (best && best->second.bound_parts >= match->bound_parts)) continue;
      best.emplace(&index, std::move(*match));
    }
    return best;
  }

  /// The documents whose vectors are most similar, or nearly so; or those that other indexes find,
  /// if they are few. Null when every document has to be looked at.
  Result<std::unique_ptr<DocumentSource>> find_similar() {
    ORRERY_TRY(auto listed, find_list(count_max(true), nullptr));
    if (listed) return over(std::move(*listed), SourceReport::Way::Index);
    ORRERY_TRY(auto similar, scope_.vectors->find(scope_));
    if (!similar) return std::unique_ptr<DocumentSource>();
    report_.indexes = {scope_.vectors->index_text()};
    report_.entries_read += similar->size();
    return over(std::move(*similar), SourceReport::Way::VectorIndex);
  }

  /// Longer lists than this are no better than the other ways.
  std::size_t count_max(bool has_order) const {
    if (scope_.choice == AccessChoice::Index) return SIZE_MAX;
    const auto documents = static_cast<double>(scope_.documents);
    double max = documents / kWorthwhilePart;
    if (shape_ == Shape::Stream) {
      max = std::min(max, std::sqrt(kStreamRows * kEntriesPerDocument * documents));
    }
    // Of n candidates all are read; in the order, as many as it takes to find the rows of a page.
    if (has_order) max = std::min(max, std::sqrt(kOrderedRows * documents));
    if (own_) max = std::min(max, static_cast<double>(own_->size()));
    return static_cast<std::size_t>(max);
  }

  /// The documents that several conditions leave, if they are few.
  Result<std::optional<Candidates>> find_list(std::size_t max, const Index* ordered) {
    const std::vector<ListSource> sources = list_sources(ordered);
    std::optional<Candidates> common;
    if (sources.empty() || max == 0) return common;
    std::size_t lists = 0;
    for (const std::size_t bound : {std::min(max, kShortListMax), max}) {
      if (bound > scope_.entries_max) return too_many_entries();
      for (const ListSource& source : sources) {
        ORRERY_TRY(auto found, look_up(source, bound));
        if (!found) continue;
        if (common) {
          Candidates both;
          std::ranges::set_intersection(*common, *found, std::back_inserter(both), {},
                                        &Candidate::number, &Candidate::number);
          common = std::move(both);
        } else {
          common = std::move(found);
        }
        for (const auto& lookup : source.lookups) served_.insert(lookup.index->text);
        if (++lists == kListsMax || common->size() <= kVeryShortListMax) break;
      }
      if (common || bound == max) break;
    }
    if (common) report_.indexes.assign(served_.begin(), served_.end());
    return common;
  }

  Result<std::optional<Candidates>> look_up(const ListSource& source, std::size_t max) {
    std::optional<Candidates> all;
    all.emplace();
    for (const auto& [index, match] : source.lookups) {
      ORRERY_TRY(const auto found,
                 index::find_candidates(scope_.snapshot, scope_.partition, index->id,
                                        match.intervals, max - all->size()));
      if (!found) {
        report_.entries_read += max - all->size();
        return std::optional<Candidates>();
      }
      report_.entries_read += found->size();
      Candidates either;
      std::ranges::set_union(*all, *found, std::back_inserter(either), {}, &Candidate::number,
                             &Candidate::number);
      all = std::move(either);
    }
    return all;
  }

  /// The sources of posting lists, lookups that promise the best selectivity first. `ordered` is
  /// the index that would be walked otherwise: it gives no list.
  std::vector<ListSource> list_sources(const Index* ordered) const {
    std::vector<ListSource::Lookup> lookups;
    for (const Index& index : indexes_) {
      if (&index == ordered) continue;
      if (auto match = match_conditions(index.spec, access_.conditions)) {
        lookups.push_back({&index, std::move(*match)});
      }
    }
    std::ranges::sort(lookups, is_better);
    std::vector<ListSource> sources;
    std::set<const PathCondition*> served;
    for (auto& lookup : lookups) {
      const auto& conditions = lookup.match.conditions;
      if (std::ranges::all_of(conditions, [&](auto* each) { return served.contains(each); })) {
        continue;
      }
      served.insert(conditions.begin(), conditions.end());
      sources.emplace_back().lookups.push_back(std::move(lookup));
    }
    for (const auto& alternatives : access_.alternatives) {
      if (auto source = source_of(alternatives)) sources.push_back(std::move(*source));
    }
    return sources;
  }

  static bool is_better(const ListSource::Lookup& a, const ListSource::Lookup& b) {
    // More parts first, then certain values.
    const auto rank = [](const ListSource::Lookup& lookup) {
      return std::tuple(-static_cast<std::ptrdiff_t>(lookup.match.conditions.size()),
                        !lookup.match.is_equality, lookup.index->id);
    };
    return rank(a) < rank(b);
  }

  /// Nothing unless there is an index for each of them.
  std::optional<ListSource> source_of(const std::vector<PathCondition>& alternatives) const {
    ListSource source;
    for (const PathCondition& alternative : alternatives) {
      std::optional<ListSource::Lookup> best;
      for (const Index& index : indexes_) {
        auto match = match_conditions(index.spec, std::span(&alternative, 1));
        if (match && (!best || !index.spec.is_composite())) best = {&index, std::move(*match)};
      }
      if (!best) return std::nullopt;
      source.lookups.push_back(std::move(*best));
    }
    return source;
  }

  const SourceScope& scope_;
  const QueryAccess& access_;
  const PreparedQuery* reader_;  // The query over the documents themselves.
  Shape shape_;
  std::vector<Index> indexes_;
  std::optional<Candidates> own_;  // Of one key: its documents, if they are few.
  std::set<std::string> served_;
  SourceReport report_;
};

}  // namespace

Result<std::unique_ptr<DocumentSource>> open_source(const SourceScope& scope,
                                                    const PreparedQuery& query,
                                                    const QueryAccess& access) {
  return AccessPlanner(scope, query, access).make();
}

}  // namespace orrery::executor
