#include "catalog/container_factory.h"

#include <memory>
#include <utility>

#include "catalog/retention.h"
#include "protocol/tokens/session_token.h"
#include "protocol/wire/resource_path.h"
#include "storage/keys.h"

namespace orrery::catalog {

ContainerPtr ContainerFactory::make(StoredContainer stored, const std::string& database_id,
                                    std::vector<Range> ranges) const {
  auto container = std::make_shared<Container>(
      Container{stored.rid,
                database_id,
                std::move(stored.definition),
                stored.version,
                stored.ts,
                RangeMap(std::move(ranges), stored.map_version, stored.next_range),
                {},
                {},
                {},
                session_version(life_.number, stored.rid),
                life_.number == 1 ? 0 : life_.first_lsn.value});
  container->rid_text = container->rid.text();
  container->alt_content_path =
      percent_encode_path("dbs/" + database_id + "/colls/" + container->definition.id());
  container->rules = make_rules_(container->definition);
  return container;
}

Result<storage::Head> ContainerFactory::first_head(const std::string& database_id, UnixSeconds now,
                                                   const ContainerDefinition& definition) const {
  std::string value;
  Lsn lsn{1};
  switch (store_.get(storage::Family::Catalog, last_head_key(database_id, definition.id()), value,
                     storage::Tier::Disk)) {
    case storage::Lookup::Found:
      if (const auto last = parse_last_head(value)) lsn = next(*last);
      break;
    case storage::Lookup::Missing:
      break;
    default:
      return Error(ErrorCode::Unavailable, "the catalog could not be read from the disk");
  }
  storage::Head head = initial_head(lsn, now, definition);
  // A container of this name may have been made in a life that ended, and be lost: positions in it
  // lie in the gap.
  if (lsn < life_.first_lsn) head.resume_at(life_.first_lsn);
  return head;
}

void ContainerFactory::set_life(const storage::Life& life) {
  // Readers of the text are under way when the catalog is loaded again.
  if (life_ == life) return;
  life_ = life;
  life_text_ = life.text();
}

StoredContainer stored_form(const Container& container) {
  StoredContainer stored{container.rid,
                         container.definition,
                         container.version,
                         container.ts,
                         container.ranges.version(),
                         {},
                         container.ranges.next_id()};
  for (const Range& range : container.ranges.all()) {
    stored.ranges.push_back(
        {range.id, range.partition->number(), range.epks, range.parents, range.made_in, range.ts});
  }
  return stored;
}

}  // namespace orrery::catalog
