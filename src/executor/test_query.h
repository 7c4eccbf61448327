// For tests: queries over a container that there is.
#pragma once

#include <string>

#include "executor/page_run.h"
#include "query/plan/access.h"
#include "query/plan/prepared.h"

namespace orrery::executor {

/// Over all documents of a container that has one range.
inline QueryJob job_over(const catalog::ContainerPtr& container, const std::string& text) {
  QueryJob job;
  job.container = container;
  job.scope.ranges = {&container->ranges.all()[0]};
  job.query = query::PreparedQuery::prepare(text, {}, {}).value();
  job.access = query::access_of(*job.query);
  return job;
}

}  // namespace orrery::executor
