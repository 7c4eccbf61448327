// PageBuilder: puts versions into a page, transaction by transaction.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "feed/page.h"
#include "feed/source.h"

namespace orrery::feed {

/// A page under construction. A transaction (all versions of one LSN) goes in whole or not at all:
/// its items are appended as they come, and taken back if they turn out not to fit.
class PageBuilder {
 public:
  /// The request and the budget outlive it. Items are appended to `text`.
  PageBuilder(const PageRequest& request, WorkBudget& work, std::string text);

  bool empty() const { return count_ == 0; }
  /// Whether nothing more can fit.
  bool full() const;

  void open_group(Lsn lsn);
  /// Fails as the filter of the request does. The page is of no use then.
  Result<> add(const Version& version);
  /// False when the group did not fit; nothing of it is in the page then.
  bool close_group();

  std::size_t count() const { return count_; }
  /// Of the last item in the page.
  Lsn last_lsn() const { return last_lsn_; }
  UnixSeconds last_ts() const { return last_ts_; }

  /// Moves text, count and groups into the page.
  void finish(Page& page);

 private:
  void append_bare(const Version& version, std::string_view shown);
  void append_wrapped(const Version& version, std::string_view shown);
  void append_tombstone(const Version& version);
  void append_key_properties(const Version& version);
  void append_key_object(const Version& version);
  void append_number(std::uint64_t value);

  const PageRequest& request_;
  WorkBudget& work_;
  std::string text_;
  std::size_t begin_;  // Where the first item begins.
  std::size_t count_ = 0;
  Lsn last_lsn_;
  UnixSeconds last_ts_ = 0;
  std::vector<PageGroup> groups_;

  // The open group.
  Lsn lsn_;
  std::size_t group_begin_ = 0;
  std::size_t group_count_ = 0;
  UnixSeconds group_ts_ = 0;
  std::array<char, 32> suffix_{};  // `,"_lsn":<n>}`
  std::size_t suffix_size_ = 0;
  std::string instead_;
};

}  // namespace orrery::feed
