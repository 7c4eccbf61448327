// Rids of new resources. A rid is given out once: it takes the next number of the counters.
#pragma once

#include "catalog/entries.h"
#include "protocol/ids.h"

namespace orrery::catalog {

Rid next_database_rid(Counters& counters);
Rid next_container_rid(Counters& counters, const Rid& database);
Rid next_encryption_key_rid(Counters& counters, const Rid& database);
Rid next_offer_rid(Counters& counters);

}  // namespace orrery::catalog
