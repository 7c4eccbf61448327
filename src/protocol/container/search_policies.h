// A container's policies for vector and full-text search, and the indexes that must agree with
// them. Definitions that the service would refuse are refused early.
#pragma once

#include <string_view>

#include "base/result.h"
#include "protocol/wire/resource_body.h"

namespace orrery {

/// `embedding_policy` is the member vectorEmbeddingPolicy, `indexes` the indexing policy's
/// vectorIndexes; either may be nullptr. BadRequest in the service's words, which clients look for.
Result<> check_vector_policies(const Json* embedding_policy, const Json* indexes);

/// Embeddings and vector indexes may be added and removed, not changed. All may be nullptr.
Result<> check_vector_change(const Json* old_policy, const Json* old_indexes,
                             const Json* new_policy, const Json* new_indexes);

/// The tag of a language that a fullTextPolicy names, in the spelling that the search knows:
/// "en-US" also for its Windows number, "1033", which clients send too. Empty when there is no such
/// one.
std::string_view full_text_language(std::string_view name);

/// `policy` is the member fullTextPolicy, `indexes` the indexing policy's fullTextIndexes; either
/// may be nullptr.
Result<> check_full_text_policies(const Json* policy, const Json* indexes);

}  // namespace orrery
