// Where changes go that could not be processed.
#pragma once

#include <functional>

#include "orrery/processor.h"

namespace orrery::processor {

/// The function that stores dead letters, as the options say; none when they say nothing. It
/// blocks, throws when it could not store one, and may be called by several threads.
///
/// In a container each has an id made of its range and document, so that one that comes again
/// replaces itself. The container may be keyed by any member of the letter that is text: `/id`,
/// `/range`, `/host`.
std::function<void(const DeadLetter&)> dead_letter_keeper(const ChangeFeedHostOptions& options);

/// The id of a letter in a container.
std::string dead_letter_id(const DeadLetter& letter);

}  // namespace orrery::processor
