// The meaning of a container's policies for queries over it.
#pragma once

#include "base/result.h"
#include "protocol/container/container_definition.h"
#include "query/bind/settings.h"
#include "query/plan/prepared.h"

namespace orrery::executor {

/// Languages, vectors, geometry and computed properties, as queries over the container see them.
query::Settings query_settings(const ContainerDefinition& definition);

/// Whether queries could use the computed properties of the definition. BadRequest.
Result<> check_computed_properties(const ContainerDefinition& definition);

/// BadRequest for an ORDER BY that the indexing policy rules out: several paths without a composite
/// index, or a path that is not indexed.
Result<> check_order_by(const query::PreparedQuery& query, const ContainerDefinition& definition);

}  // namespace orrery::executor
