#include "processor/errors.h"

#include <fmt/format.h>

#include <utility>

#include "protocol/wire/wire_error.h"

namespace orrery::processor {

Error error_of(const client::CosmosException& exception) {
  const auto code = [&] {
    if (exception.failure() == client::Failure::Argument) return ErrorCode::BadRequest;
    switch (exception.status()) {
      case 400:
        return ErrorCode::BadRequest;
      case 401:
        return ErrorCode::Unauthorized;
      case 403:
        return ErrorCode::Forbidden;
      case 404:
        return exception.is_not_found() ? ErrorCode::NotFound : ErrorCode::Unavailable;
      case 409:
        return ErrorCode::Conflict;
      case 410:
        return ErrorCode::RangeGone;
      case 412:
        return ErrorCode::PreconditionFailed;
      case 413:
        return ErrorCode::RequestTooLarge;
      case 429:
        return ErrorCode::TooManyRequests;
      case 501:
        return ErrorCode::NotImplemented;
      default:
        return ErrorCode::Unavailable;
    }
  }();
  return Error(code, exception.what());
}

Error error_of(std::exception_ptr failure) {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const client::CosmosException& exception) {
    return error_of(exception);
  } catch (const std::exception& exception) {
    return Error(ErrorCode::Internal, exception.what());
  } catch (...) {
    return Error(ErrorCode::Internal, "something that is no std::exception");
  }
}

Error no_such_lease_document(std::string_view id) {
  return Error(ErrorCode::NotFound, fmt::format("there is no document '{}'", id));
}

void throw_error(const Error& error) {
  const WireError wire = wire_error(error.code());
  client::CosmosException::Details details;
  details.status = wire.status;
  details.sub_status = wire.substatus;
  details.code = wire.code;
  throw client::CosmosException(error.message(), std::move(details));
}

}  // namespace orrery::processor
