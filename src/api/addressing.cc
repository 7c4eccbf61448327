#include "api/addressing.h"

#include <fmt/format.h>

#include "protocol/wire/headers.h"

namespace orrery::api {

bool addressed_by_rid(const Services& services, const ResourcePath& path) {
  if (!path.rid_link) return false;
  const auto rid = Rid::parse(path.names[0]);
  return rid && rid->kind() == RidKind::Database && services.catalog.database(*rid) != nullptr;
}

Result<catalog::DatabasePtr> find_database(const Services& services, const ResourcePath& path,
                                           ErrorCode missing) {
  catalog::DatabasePtr database;
  if (addressed_by_rid(services, path)) {
    database = services.catalog.database(*Rid::parse(path.names[0]));
  }
  if (!database) database = services.catalog.database(std::string_view(path.names[0]));
  if (!database) {
    return Error(missing,
                 fmt::format("Resource Not Found. There is no database '{}'.", path.names[0]));
  }
  return database;
}

Result<catalog::ContainerPtr> find_container(const Services& services, Context& context,
                                             ErrorCode missing) {
  const ResourcePath& path = context.path;
  catalog::ContainerPtr container;
  if (addressed_by_rid(services, path)) {
    const auto rid = Rid::parse(path.names[1]);
    const auto database = Rid::parse(path.names[0]);
    if (rid && rid->kind() == RidKind::Container && rid->database_rid() == *database) {
      container = services.catalog.container(*rid);
    }
  } else {
    container = services.catalog.container(path.names[0], path.names[1]);
    if (!container) ORRERY_TRY(find_database(services, path, ErrorCode::OwnerNotFound));
  }
  if (!container) {
    return Error(missing, fmt::format("Resource Not Found. There is no container '{}' in database "
                                      "'{}'.",
                                      path.names[1], path.names[0]));
  }
  const auto intended = context.header(headers::kIntendedCollectionRid);
  if (!intended.empty() && intended != container->rid_text) {
    return Error(ErrorCode::ContainerRidMismatch,
                 fmt::format("The container's rid is {}, but the request is meant for {}: the "
                             "container was deleted and created anew. Read it again.",
                             container->rid_text, intended));
  }
  context.container = container;
  return container;
}

}  // namespace orrery::api
