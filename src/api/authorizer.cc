#include "api/authorizer.h"

#include "api/target.h"

namespace orrery::api {

Result<> authorize(const Principal& principal, Action action, const Target&) {
  if (principal.access == Access::ReadOnly && action == Action::Write) {
    return Error(ErrorCode::Forbidden,
                 "A read-only key signed this request, which writes. Use a read-write key.");
  }
  return {};
}

}  // namespace orrery::api
