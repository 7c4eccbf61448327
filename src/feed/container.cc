#include "feed/container.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "feed/page_builder.h"
#include "feed/source.h"

namespace orrery::feed {
namespace {

/// One part of one range, being read. Sources point into it, so it stays where it is.
struct Strand {
  Strand(const storage::Snapshot& snapshot, const ContainerRange& range, storage::Head head_then,
         const PageRequest& asked, ContainerPosition::ReadRange part, WorkBudget& work)
      : epks(std::move(part.epks)),
        head(std::move(head_then)),
        request(asked),
        after(part.after),
        context{snapshot, range.partition, head, work} {
    request.after = after;
    request.began_at = part.began_at;
    request.scope = {};
    if (epks != range.epks) request.scope.epks = epks;
  }

  EpkRange epks;
  storage::Head head;
  PageRequest request;
  Lsn after;  ///< how far the reader is, with what is in the page
  SourceContext context;
  std::unique_ptr<Source> source;
  Step step = Step::End;
  std::optional<Lsn> held_back;  ///< a group that did not fit any more

  /// How far the reader is if it takes the page: what did not match need not be looked at again.
  Lsn position() const {
    if (held_back) return std::max(after, Lsn{held_back->value - 1});
    switch (step) {
      case Step::Version:
        return std::max(after, Lsn{source->version().position.lsn.value - 1});
      case Step::OutOfTime:
        return std::max(after, Lsn{source->reached().value - 1});
      case Step::End:
        break;
    }
    return std::max(after, head.lsn);
  }
};

/// Parts of one range that are equally far become one.
ContainerPosition joined(const std::vector<std::unique_ptr<Strand>>& strands,
                         const std::vector<ContainerRange>& ranges) {
  std::vector<ContainerPosition::Part> parts;
  for (const auto& strand : strands) {
    const bool begins_range = std::ranges::any_of(
        ranges, [&](const ContainerRange& range) { return range.epks.min == strand->epks.min; });
    const Lsn position = strand->position();
    const auto began_at = began_at_of_next(strand->head, strand->request, position);
    if (!begins_range && parts.back().after == position && parts.back().began_at == began_at) {
      continue;
    }
    parts.push_back({strand->epks.min, position, began_at});
  }
  return ContainerPosition(std::move(parts));
}

}  // namespace

Result<ContainerPage> read_container(Reader& reader, const storage::Snapshot& snapshot,
                                     const std::vector<ContainerRange>& ranges,
                                     const ContainerPosition& from, const PageRequest& request,
                                     std::string text) {
  ContainerPage page;
  const RequestWork work(request);
  std::vector<std::unique_ptr<Strand>> strands;
  for (const ContainerRange& range : ranges) {
    ORRERY_TRY(const auto head, head_in(snapshot, range.partition));
    page.heads.push_back(head.lsn);
    for (auto& part : from.within(range.epks)) {
      auto strand =
          std::make_unique<Strand>(snapshot, range, head, request, std::move(part), *work);
      ORRERY_TRY(reader.check(head, strand->request));
      if (!page.ended_life) page.ended_life = ended_life_of(head, strand->after);
      if (strand->after < head.lsn) {
        ORRERY_TRY(strand->source, reader.open(strand->context, strand->request));
        ORRERY_TRY(strand->step, strand->source->next());
      }
      strands.push_back(std::move(strand));
    }
  }

  PageBuilder builder(request, *work, std::move(text));
  for (;;) {
    // The oldest change of all; of equally old ones that of the first range.
    Strand* oldest = nullptr;
    bool out_of_time = false;
    for (const auto& strand : strands) {
      out_of_time |= strand->step == Step::OutOfTime;
      if (strand->step != Step::Version) continue;
      if (oldest == nullptr || strand->source->version().ts < oldest->source->version().ts) {
        oldest = strand.get();
      }
    }
    // A range that ran out of time may have an older change: nothing may overtake it.
    if (oldest == nullptr || out_of_time) break;
    Source& source = *oldest->source;
    const Lsn lsn = source.version().position.lsn;
    builder.open_group(lsn);
    do {
      ORRERY_TRY(builder.add(source.version()));
      ORRERY_TRY(oldest->step, source.next());
    } while (oldest->step == Step::Version && source.version().position.lsn == lsn);
    if (!builder.close_group()) {
      // It waits for the next page, and with it all that comes after it.
      oldest->step = Step::OutOfTime;
      oldest->held_back = lsn;
      break;
    }
    oldest->after = lsn;
    if (builder.full()) break;
  }
  if (work->has_stopped()) return interruption(*work);

  page.caught_up =
      std::ranges::all_of(strands, [](const auto& strand) { return strand->step == Step::End; });
  page.below_merge = std::ranges::any_of(
      strands, [](const auto& strand) { return strand->position() < strand->head.merged_at; });
  page.position = joined(strands, ranges);
  Page built;
  builder.finish(built);
  page.text = std::move(built.text);
  page.count = built.count;
  page.last_ts = built.last_ts;
  return page;
}

Result<ContainerTimePosition> find_container_time(Reader& reader, const storage::Snapshot& snapshot,
                                                  const std::vector<ContainerRange>& ranges,
                                                  const PageRequest& asked, UnixSeconds time) {
  ContainerTimePosition found;
  std::vector<ContainerPosition::Part> parts;
  PageRequest request = asked;
  request.scope = {};
  for (const ContainerRange& range : ranges) {
    ORRERY_TRY(const auto each, reader.find_time(snapshot, range.partition, request, time));
    found.found |= each.found;
    found.heads.push_back(each.head);
    parts.push_back({range.epks.min, each.position});
  }
  found.position = ContainerPosition(std::move(parts));
  return found;
}

Result<ContainerTimePosition> find_container_heads(const storage::Snapshot& snapshot,
                                                   const std::vector<ContainerRange>& ranges) {
  ContainerTimePosition found;
  std::vector<ContainerPosition::Part> parts;
  for (const ContainerRange& range : ranges) {
    ORRERY_TRY(const auto head, head_in(snapshot, range.partition));
    found.heads.push_back(head.lsn);
    parts.push_back({range.epks.min, head.lsn});
  }
  found.position = ContainerPosition(std::move(parts));
  return found;
}

Result<ContainerLag> container_lag(Reader& reader, const storage::Snapshot& snapshot,
                                   const std::vector<ContainerRange>& ranges,
                                   const ContainerPosition& from, const PageRequest& asked) {
  ContainerLag lag;
  PageRequest request = asked;
  for (const ContainerRange& range : ranges) {
    for (auto& [epks, after, began_at] : from.within(range.epks)) {
      request.scope = {};
      if (epks != range.epks) request.scope.epks = epks;
      request.after = after;
      request.began_at = began_at;
      ORRERY_TRY(const auto part, reader.lag(snapshot, range.partition, request));
      lag.sum.items += part.items;
      lag.sum.bytes += part.bytes;
      if (part.oldest_ts) {
        lag.sum.oldest_ts = std::min(lag.sum.oldest_ts.value_or(*part.oldest_ts), *part.oldest_ts);
      }
      lag.sum.lsns += part.lsns;
      if (lag.heads.empty() || epks.min == range.epks.min) lag.heads.push_back(part.head);
    }
  }
  return lag;
}

}  // namespace orrery::feed
