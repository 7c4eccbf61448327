// The indexes of a query's ranges: which of those that would help it are there, the advisor's books
// about it, and waiting for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/services.h"
#include "base/async.h"
#include "executor/page_run.h"
#include "protocol/container/index_path.h"

namespace orrery::api {

/// How far the ranges of a query have the indexes that would help it.
struct IndexState {
  std::vector<IndexSpec> missing;  ///< that some range has not even begun
  bool is_building = false;

  bool is_ready() const { return missing.empty() && !is_building; }
};
IndexState index_state(const executor::QueryJob& job);

/// Those of the query's ranges that are not complete yet.
std::vector<std::string> indexes_being_built(const executor::QueryJob& job);

/// Tells the advisor what a query has read, by which it knows which indexes are worth building, and
/// has those built that it advises.
void advise(const Services& services, const Context& context, const executor::QueryJob& job,
            const executor::QueryPage& page);

/// Tells the advisor what indexes have saved, by which it knows which are worth keeping. One call
/// may stand for several queries.
void note_use(const Services& services, const executor::QueryJob& job,
              const executor::QueryPage& page, std::uint64_t times);
/// The same of queries that an event loop serves: one of many is looked at.
void note_brief_use(const Services& services, const executor::QueryJob& job,
                    const executor::QueryPage& page);

/// x-orrery-query-access: index. Has the indexes built that would help the query, and waits for
/// them. BadRequest when there is no room for one; Unavailable when it takes too long, ClientGone;
/// RangeGone.
Async<> wait_for_indexes(const Services& services, const Context& context,
                         const executor::QueryJob& job, const Cancellation& cancellation);

}  // namespace orrery::api
