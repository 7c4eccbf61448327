// Throughput as it goes over the wire: headers when something is created, offers afterwards.
#pragma once

#include <string>

#include "client/exchange/pipeline.h"
#include "json/value.h"
#include "orrery/client.h"

namespace orrery::client {

/// Adds the header of a creation. Throws CosmosException (Argument) unless it is one of the two.
void add_throughput(HeaderList& headers, const Throughput& throughput);

Offer offer_of(const json::Value& body);

/// Of the resource with that rid. Throws CosmosException (404) when it has no throughput of its
/// own.
Response<Throughput> read_throughput_of(Pipeline& pipeline, const std::string& resource_rid,
                                        const RequestOptions& options);
/// Also from manual to autoscale and back, which takes one request more.
Response<Throughput> replace_throughput_of(Pipeline& pipeline, const std::string& resource_rid,
                                           const Throughput& throughput,
                                           const RequestOptions& options);

}  // namespace orrery::client
