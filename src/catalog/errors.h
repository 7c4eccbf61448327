// Errors that changes of several kinds of resources share.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace orrery::catalog {

inline Error already_exists(std::string_view kind, std::string_view id) {
  return Error(ErrorCode::Conflict,
               fmt::format("Entity with the specified id already exists in the system. There is a "
                           "{} '{}' already.",
                           kind, id));
}

inline Error not_found(std::string_view kind) {
  return Error(ErrorCode::NotFound,
               fmt::format("Resource Not Found. The {} does not exist.", kind));
}

inline Error precondition_failed(std::string_view kind) {
  return Error(
      ErrorCode::PreconditionFailed,
      fmt::format("One of the specified pre-condition is not met. The {} has changed since "
                  "the etag in If-Match was read.",
                  kind));
}

inline Error database_deleted() {
  return Error(ErrorCode::OwnerNotFound, "Resource Not Found. The database was deleted.");
}

}  // namespace orrery::catalog
