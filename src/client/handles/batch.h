// Operations and their results as they go over the wire, in a batch or in bulk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/exchange/pipeline.h"
#include "orrery/batch.h"

namespace orrery::client {

/// Appends one element of the array that a batch is; `key_json` is the partition key, or empty
/// where the request has one for all. Throws CosmosException (Argument) when the operation lacks
/// what it needs.
void append_operation(std::string& body, const ItemOperation& operation,
                      std::string_view key_json = {});

/// The results of `count` operations. Throws CosmosException when the answer does not have so many.
std::vector<ItemResult> results_of(const Answer& answer, std::size_t count);

/// Whether it comes to the same when it is carried out twice.
bool is_repeatable(const ItemOperation& operation);

}  // namespace orrery::client
