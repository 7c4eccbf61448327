#include "api/target.h"

#include <fmt/format.h>

#include "api/context.h"
#include "api/documents/document_request.h"
#include "api/services.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

Result<catalog::DatabasePtr> find_database(const Services& services, const ResourcePath& path,
                                           ErrorCode missing) {
  catalog::DatabasePtr database;
  if (is_rid_path(services, path)) {
    database = services.catalog.database(*Rid::parse(path.names[0]));
  }
  if (!database) database = services.catalog.database(std::string_view(path.names[0]));
  if (!database) {
    return Error(missing,
                 fmt::format("Resource Not Found. There is no database '{}'.", path.names[0]));
  }
  return database;
}

Result<catalog::ContainerPtr> find_container(const Services& services, const Context& context,
                                             ErrorCode missing) {
  const ResourcePath& path = context.path;
  catalog::ContainerPtr container;
  if (is_rid_path(services, path)) {
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
  return container;
}

Result<> resolve_database(const Services& services, Context& context, ErrorCode missing) {
  ORRERY_TRY(context.target.database, find_database(services, context.path, missing));
  return {};
}

Result<> resolve_container(const Services& services, Context& context, ErrorCode missing) {
  ORRERY_TRY(context.target.container, find_container(services, context, missing));
  return {};
}

}  // namespace

bool is_rid_path(const Services& services, const ResourcePath& path) {
  if (!path.rid_link) return false;
  const auto rid = Rid::parse(path.names[0]);
  return rid && rid->kind() == RidKind::Database && services.catalog.database(*rid) != nullptr;
}

Result<> resolve(const Services& services, Context& context) {
  context.target = {};
  const ResourcePath& path = context.path;
  switch (path.type) {
    case ResourceType::Databases:
      return path.is_feed ? Result<>() : resolve_database(services, context, ErrorCode::NotFound);
    case ResourceType::EncryptionKeys:
      return resolve_database(services, context, ErrorCode::OwnerNotFound);
    case ResourceType::Containers:
      return path.is_feed ? resolve_database(services, context, ErrorCode::OwnerNotFound)
                          : resolve_container(services, context, ErrorCode::NotFound);
    case ResourceType::Documents: {
      ORRERY_TRY(resolve_container(services, context, ErrorCode::OwnerNotFound));
      return path.is_feed ? Result<>() : resolve_document(services, context);
    }
    case ResourceType::Ranges:
    case ResourceType::Conflicts:
    case ResourceType::Split:
    case ResourceType::Merge:
    case ResourceType::PartitionKeyDelete:
      return resolve_container(services, context, ErrorCode::OwnerNotFound);
    default:
      return {};  // The account, offers, and resources that this server does not have.
  }
}

bool is_outdated(const Services& services, const Target& target) {
  return target.container && services.catalog.container(target.container->rid) != target.container;
}

}  // namespace orrery::api
