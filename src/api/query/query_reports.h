// The response headers about a query page: query metrics, index metrics, the explanation.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "executor/page_run.h"
#include "protocol/container/container_definition.h"

namespace orrery::api {

struct QueryTimes {
  std::chrono::nanoseconds compile{};  ///< parsing and binding
  std::chrono::nanoseconds plan{};     ///< choosing how to find documents
};

/// x-ms-documentdb-query-metrics
std::string query_metrics(const executor::QueryPage& page, const QueryTimes& times);

/// Indexes of the policy that serve the query, and others that would.
struct IndexUse {
  std::vector<IndexSpec> utilized;
  std::vector<IndexSpec> potential;
};
IndexUse index_use(const query::QueryAccess& access, const ContainerDefinition& definition);

/// Of what is told of indexes in a header: clients refuse responses whose headers are much longer
/// in all (Node: 16 KiB). The best come first, the rest is left out.
inline constexpr std::size_t kReportBytesMax = 8000;

/// x-ms-cosmos-index-utilization, as it is asked for by either header. Of kReportBytesMax at most.
std::string index_metrics_base64(const IndexUse& use);
std::string index_metrics_v2(const IndexUse& use);

/// x-orrery-explain: how the page was made, as percent-encoded JSON of kReportBytesMax at most;
/// `rangesLeftOut` says of how many ranges there was no room to tell. `helpful` are indexes that
/// are missing in some range; they are told unless the page shows that it has done as well without.
/// `potential` is told where the page has read much in vain.
std::string explanation(const executor::QueryPage& page, const query::PreparedQuery& query,
                        const std::vector<IndexSpec>& helpful,
                        const std::vector<IndexSpec>& potential,
                        const std::vector<std::string>& building);

}  // namespace orrery::api
