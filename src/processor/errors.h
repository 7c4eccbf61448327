// Between the exceptions of the client's public face and the Results that everything here returns.
#pragma once

#include <exception>
#include <string_view>

#include "base/result.h"
#include "orrery/exception.h"

namespace orrery::processor {

/// The error that stands for an exception. Transient failures (no answer, a session that is not
/// there yet) are Unavailable.
Error error_of(const client::CosmosException& exception);
/// Likewise; other exceptions than CosmosException are Internal.
Error error_of(std::exception_ptr failure);

inline bool has_code(const Error& error, ErrorCode code) { return error.code() == code; }

/// The error of a lease store that has no document of that id.
Error no_such_lease_document(std::string_view id);

/// The other way, for callers that block.
[[noreturn]] void throw_error(const Error& error);

}  // namespace orrery::processor
