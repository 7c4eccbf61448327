// From names or rids in a path to what exists.
#pragma once

#include "api/context.h"
#include "api/services.h"
#include "base/result.h"
#include "catalog/catalog.h"

namespace orrery::api {

/// Whether the path is one of rids. The test that clients apply to sign, and a database with that
/// rid.
bool addressed_by_rid(const Services& services, const ResourcePath& path);

/// The database of the path. `missing` is NotFound where it is what the request addresses,
/// OwnerNotFound where it is only above that.
Result<catalog::DatabasePtr> find_database(const Services& services, const ResourcePath& path,
                                           ErrorCode missing);

/// The container of the path, which also becomes the context's. OwnerNotFound when the database is
/// missing; ContainerRidMismatch when the client means another one of the same name.
Result<catalog::ContainerPtr> find_container(const Services& services, Context& context,
                                             ErrorCode missing);

}  // namespace orrery::api
