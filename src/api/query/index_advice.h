// Which indexes a query would like to have.
#pragma once

#include <vector>

#include "protocol/container/container_definition.h"
#include "protocol/container/index_path.h"
#include "query/plan/access.h"

namespace orrery::api {

/// Indexes that would have helped the query and that the policy allows, best first: for index
/// metrics, for the explanation, and for building them.
std::vector<IndexSpec> helpful_indexes(const query::QueryAccess& access,
                                       const ContainerDefinition& definition);

/// Those of `helpful` that also help a query of a single partition key: not one over a path of the
/// key alone, where all its documents have the same value.
std::vector<IndexSpec> helpful_within_key(std::vector<IndexSpec> helpful,
                                          const PartitionKeyDefinition& key);

/// Those over a path of the partition key alone that the policy allows.
std::vector<IndexSpec> key_indexes(const ContainerDefinition& definition);

/// Indexes that would have helped more, if the policy were to name them: paths that it excludes,
/// and a composite one for several conditions, or for conditions and an order.
std::vector<IndexSpec> potential_indexes(const query::QueryAccess& access,
                                         const ContainerDefinition& definition);

}  // namespace orrery::api
