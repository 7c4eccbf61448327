// Between the exceptions of the client's public face and the Results that everything here returns.
#pragma once

#include <exception>

#include "base/result.h"
#include "orrery/exception.h"

namespace orrery::processor {

/// The error that stands for an exception. What may pass by itself (no answer, a session that is
/// not there yet) is Unavailable.
Error error_of(const client::CosmosException& exception);
/// Likewise; what is no CosmosException is Internal.
Error error_of(std::exception_ptr failure);

/// The other way, for callers that block.
[[noreturn]] void throw_error(const Error& error);

}  // namespace orrery::processor
