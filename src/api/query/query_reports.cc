#include "api/query/query_reports.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/query/index_advice.h"
#include "protocol/base64.h"
#include "protocol/wire/resource_body.h"
#include "protocol/wire/resource_path.h"

namespace orrery::api {
namespace {

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// `/a/?` of a single path, and `/a/*` of places, as policies write them.
std::string single_text(const IndexSpec& spec) {
  return spec.parts.front().path.text() + (spec.is_spatial() ? "/*" : "/?");
}

std::vector<std::string> composite_texts(const IndexSpec& spec) {
  std::vector<std::string> texts;
  texts.reserve(spec.parts.size());
  for (const IndexSpec::Part& part : spec.parts) {
    texts.push_back(part.path.text() + (part.is_descending ? " DESC" : " ASC"));
  }
  return texts;
}

Json indexes_v1(const std::vector<IndexSpec>& specs, bool are_composite) {
  Json list = Json::array();
  for (const IndexSpec& spec : specs) {
    if (spec.is_composite() != are_composite) continue;
    if (are_composite) {
      list.push_back({{"IndexSpecs", composite_texts(spec)},
                      {"IndexPreciseSet", true},
                      {"IndexImpactScore", "High"}});
    } else {
      list.push_back({{"FilterExpression", ""},
                      {"IndexSpec", single_text(spec)},
                      {"FilterPreciseSet", true},
                      {"IndexPreciseSet", true},
                      {"IndexImpactScore", "High"}});
    }
  }
  return list;
}

Json indexes_v2(const std::vector<IndexSpec>& specs) {
  Json singles = Json::array();
  Json composites = Json::array();
  for (const IndexSpec& spec : specs) {
    if (spec.is_composite()) {
      composites.push_back({{"IndexSpecs", composite_texts(spec)}});
    } else {
      singles.push_back({{"IndexSpec", single_text(spec)}});
    }
  }
  return {{"SingleIndexes", std::move(singles)}, {"CompositeIndexes", std::move(composites)}};
}

Json spec_texts(const std::vector<IndexSpec>& specs) {
  Json texts = Json::array();
  for (const IndexSpec& spec : specs) texts.push_back(spec.text());
  return texts;
}

/// The first half of it.
template <typename List>
void halve(List& list) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
}

/// As much of the indexes as `encode` brings into a header.
template <typename Encode>
std::string report_of(IndexUse use, const Encode& encode) {
  std::string text = encode(use);
  while (text.size() > kReportBytesMax && !(use.utilized.empty() && use.potential.empty())) {
    halve(use.utilized.size() > use.potential.size() ? use.utilized : use.potential);
    text = encode(use);
  }
  return text;
}

/// The missing ones that would have helped the page: not those that have served all the same. Of
/// one key documents are found by their ids without an index, and no other would find them sooner.
std::vector<IndexSpec> still_helpful(std::vector<IndexSpec> helpful,
                                     const executor::QueryPage& page) {
  const auto has_served = [&](const IndexSpec& spec) {
    const std::string text = spec.text();
    bool is_read = false;
    for (const executor::RangeReport& range : page.ranges) {
      if (range.source.way == executor::SourceReport::Way::Nothing) continue;
      is_read = true;
      const auto& indexes = range.source.indexes;
      if (std::ranges::find(indexes, text) == indexes.end()) return false;
    }
    return is_read;
  };
  const auto ids = IndexSpec::single({{{.name = "id", .is_element = false}}});
  const bool is_by_id = std::ranges::find(helpful, ids) != helpful.end() && has_served(ids);
  if (is_by_id) return {};
  std::erase_if(helpful, has_served);
  return helpful;
}

/// Whether most of the documents that a page has read were not wanted.
bool reads_in_vain(const executor::QueryPage& page) {
  constexpr std::uint64_t kWorthwhile = 10;
  return page.stats.documents > kWorthwhile * (page.stats.rows + 1);
}

std::string_view name_of(query::PreparedQuery::Shape shape) {
  using Shape = query::PreparedQuery::Shape;
  switch (shape) {
    case Shape::Stream:
      return "stream";
    case Shape::Ordered:
      return "ordered";
    case Shape::Grouped:
      return "grouped";
    case Shape::Ranked:
      break;
  }
  return "ranked";
}

std::string_view name_of(executor::SourceReport::Way way) {
  switch (way) {
    case executor::SourceReport::Way::Scan:
      return "scan";
    case executor::SourceReport::Way::Index:
      return "index";
    case executor::SourceReport::Way::OrderedIndex:
      return "ordered index";
    case executor::SourceReport::Way::VectorIndex:
      return "vector index";
    case executor::SourceReport::Way::Nothing:
      break;
  }
  return "nothing";
}

}  // namespace

std::string query_metrics(const executor::QueryPage& page, const QueryTimes& times) {
  const double run = milliseconds(page.total_time - page.lookup_time);
  const double ratio = page.stats.documents == 0 ? 1.0
                                                 : static_cast<double>(page.count) /
                                                       static_cast<double>(page.stats.documents);
  return fmt::format(
      "totalExecutionTimeInMs={:.2f};queryCompileTimeInMs={:.2f};"
      "queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs={:.2f};"
      "queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={:.2f};indexLookupTimeInMs={:.2f};"
      "documentLoadTimeInMs=0.00;systemFunctionExecuteTimeInMs=0.00;"
      "userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={};retrievedDocumentSize={};"
      "outputDocumentCount={};outputDocumentSize={};writeOutputTimeInMs=0.00;"
      "indexUtilizationRatio={:.2f}",
      milliseconds(page.total_time + times.compile + times.plan), milliseconds(times.compile),
      milliseconds(times.plan), run, milliseconds(page.lookup_time), page.stats.documents,
      page.stats.document_bytes, page.count, page.rows.size(), std::min(ratio, 1.0));
}

IndexUse index_use(const query::QueryAccess& access, const ContainerDefinition& definition) {
  return {.utilized = helpful_indexes(access, definition),
          .potential = potential_indexes(access, definition)};
}

std::string index_metrics_base64(const IndexUse& use) {
  return report_of(use, [](const IndexUse& told) {
    const Json metrics = {{"UtilizedSingleIndexes", indexes_v1(told.utilized, false)},
                          {"PotentialSingleIndexes", indexes_v1(told.potential, false)},
                          {"UtilizedCompositeIndexes", indexes_v1(told.utilized, true)},
                          {"PotentialCompositeIndexes", indexes_v1(told.potential, true)}};
    return base64_encode(metrics.dump(), Base64Alphabet::Standard);
  });
}

std::string index_metrics_v2(const IndexUse& use) {
  return report_of(use, [](const IndexUse& told) {
    const Json metrics = {{"UtilizedIndexes", indexes_v2(told.utilized)},
                          {"PotentialIndexes", indexes_v2(told.potential)}};
    return percent_encode_path(metrics.dump());
  });
}

std::string explanation(const executor::QueryPage& page, const query::PreparedQuery& query,
                        const std::vector<IndexSpec>& helpful,
                        const std::vector<IndexSpec>& potential,
                        const std::vector<std::string>& building) {
  Json ranges = Json::array();
  for (const executor::RangeReport& range : page.ranges) {
    ranges.push_back({{"id", range.range.text()},
                      {"way", name_of(range.source.way)},
                      {"indexes", range.source.indexes},
                      {"documentsRead", range.source.documents_read},
                      {"entriesRead", range.source.entries_read},
                      {"rows", range.rows}});
  }
  Json explained = {{"shape", name_of(query.shape())},
                    {"ranges", std::move(ranges)},
                    {"helpful", spec_texts(still_helpful(helpful, page))},
                    {"potential", reads_in_vain(page) ? spec_texts(potential) : Json::array()},
                    {"building", building}};
  std::string text = percent_encode_path(explained.dump());
  while (text.size() > kReportBytesMax) {
    // Where there are most, one is missed least.
    Json* longest = &explained["ranges"];
    for (const char* name : {"helpful", "potential", "building"}) {
      if (Json& list = explained[name]; list.size() > longest->size()) longest = &list;
    }
    if (longest->empty()) break;
    halve(*longest);
    const std::size_t told = explained["ranges"].size();
    if (told < page.ranges.size()) explained["rangesLeftOut"] = page.ranges.size() - told;
    text = percent_encode_path(explained.dump());
  }
  return text;
}

}  // namespace orrery::api
