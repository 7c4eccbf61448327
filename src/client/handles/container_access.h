// ContainerAccess: the way of a container's requests, for those of us who send their own. Not a
// part of the public headers.
#pragma once

#include <memory>

#include "client/exchange/pipeline.h"
#include "orrery/container.h"

namespace orrery::client {

struct ContainerAccess {
  static Pipeline& pipeline(const Container& container) { return *container.pipeline_; }
};

}  // namespace orrery::client
