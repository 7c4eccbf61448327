#include "processor/hosting/lanes.h"

#include <algorithm>
#include <functional>

#include "base/assert.h"
#include "json/value.h"

namespace orrery::processor {

namespace {

/// "/a/b" as steps; empty when it is no path. Quoted parts lose their quotes.
std::vector<json::Step> steps_of(std::string_view path) {
  std::vector<json::Step> steps;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    std::size_t end = path.find('/');
    if (path.starts_with('"')) {
      const std::size_t quote = path.find('"', 1);
      if (quote == std::string_view::npos) return {};
      steps.emplace_back(std::string(path.substr(1, quote - 1)));
      path.remove_prefix(quote + 1);
      continue;
    }
    if (end == std::string_view::npos) end = path.size();
    steps.emplace_back(std::string(path.substr(0, end)));
    path.remove_prefix(end);
  }
  return steps;
}

}  // namespace

DocumentReader::DocumentReader(const std::vector<std::string>& key_paths,
                               client::ChangeFeedMode mode) {
  // With all versions the document is inside, and of a delete only what was there before.
  const bool wrapped = mode == client::ChangeFeedMode::AllVersionsAndDeletes;
  const std::vector<std::string> roots =
      wrapped ? std::vector<std::string>{"current", "previous"} : std::vector<std::string>{""};
  for (const std::string& root : roots) {
    std::vector<json::Step> base;
    if (!root.empty()) base.emplace_back(root);
    std::vector<std::size_t>& slots = keys_.emplace_back();
    for (const std::string& path : key_paths) {
      std::vector<json::Step> steps = base;
      std::ranges::move(steps_of(path), std::back_inserter(steps));
      if (steps.size() > base.size()) slots.push_back(paths_.add(steps));
    }
    std::vector<json::Step> id = base;
    id.emplace_back(std::string("id"));
    ids_.push_back(paths_.add(id));
  }
  const std::vector<json::Step> lsn =
      wrapped ? std::vector<json::Step>{std::string("metadata"), std::string("lsn")}
              : std::vector<json::Step>{std::string("_lsn")};
  lsn_ = paths_.add(lsn);
}

std::string DocumentReader::key_of(std::string_view document) const {
  std::vector<json::Value> found(paths_.size());
  paths_.read(json::Value::of_checked(document), found);
  std::string key;
  for (const std::vector<std::size_t>& slots : keys_) {
    const bool there =
        std::ranges::any_of(slots, [&](std::size_t slot) { return !found[slot].is_undefined(); });
    if (!there) continue;
    for (const std::size_t slot : slots) {
      found[slot].append_to(key);
      key += ',';
    }
    return key;
  }
  return key;
}

std::optional<std::uint64_t> DocumentReader::lsn_of(std::string_view document) const {
  std::vector<json::Value> found(paths_.size());
  paths_.read(json::Value::of_checked(document), found);
  if (!found[lsn_].is_number()) return std::nullopt;
  return static_cast<std::uint64_t>(found[lsn_].as_number().integer);
}

std::string DocumentReader::id_of(std::string_view document) const {
  std::vector<json::Value> found(paths_.size());
  paths_.read(json::Value::of_checked(document), found);
  std::string buffer;
  for (const std::size_t slot : ids_) {
    if (found[slot].is_string()) return std::string(found[slot].as_string(buffer));
  }
  return {};
}

std::size_t lane_of(std::string_view key, std::size_t lanes) {
  return std::hash<std::string_view>()(key) % lanes;
}

Watermark::PageId Watermark::begin(std::string to, std::size_t parts, std::uint64_t documents) {
  pages_.push_back({std::move(to), parts, documents, false});
  return first_ + pages_.size() - 1;
}

void Watermark::part_done(PageId page, bool checkpoint_requested) {
  ORRERY_ASSERT(page >= first_ && page - first_ < pages_.size());
  Page& of = pages_[page - first_];
  --of.open_parts;
  if (checkpoint_requested) of.checkpoint_requested = true;
}

std::optional<Watermark::Progress> Watermark::take_progress() {
  std::optional<Progress> progress;
  while (!pages_.empty() && pages_.front().open_parts == 0) {
    if (!progress) progress.emplace();
    progress->position = std::move(pages_.front().to);
    progress->documents += pages_.front().documents;
    if (pages_.front().checkpoint_requested) progress->checkpoint_requested = true;
    pages_.pop_front();
    ++first_;
  }
  return progress;
}

std::size_t Watermark::open_pages() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(pages_, [](const Page& page) { return page.open_parts > 0; }));
}

}  // namespace orrery::processor
