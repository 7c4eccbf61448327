// Response<T>, ItemPage, Page<T>: what calls of the client give back.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::client {

/// One attempt of a request.
struct Attempt {
  std::string endpoint;
  std::string activity_id;
  int status = 0;  ///< 0: no answer
  int sub_status = 0;
  std::chrono::microseconds duration{0};
  std::string failure;  ///< in words, when there was no answer
};

/// The attempts that led to an answer.
struct Diagnostics {
  std::vector<Attempt> attempts;
  std::chrono::microseconds duration{0};  ///< of all attempts, with the waits between them

  /// One line for a log.
  std::string to_string() const;
};

/// The metadata of an answer.
struct ResponseInfo {
  int status = 0;
  double request_charge = 0;
  std::string activity_id;
  std::string etag;
  std::string session_token;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  Diagnostics diagnostics;

  /// The header of that name, given in lower case; empty when there is none.
  std::string_view header(std::string_view name) const;
};

/// An answer with one thing in it.
template <typename T>
struct Response : ResponseInfo {
  T value{};
};

/// Nothing, for answers that have no contents.
struct Nothing {};

/// Documents as text, many at once, without a copy of each: the views live as long as the page or
/// any copy of it.
class ItemPage : public ResponseInfo {
 public:
  ItemPage() = default;
  /// `items` are pieces of `text`.
  ItemPage(ResponseInfo info, std::shared_ptr<const std::string> text,
           std::vector<std::string_view> items, std::string next_page)
      : ResponseInfo(std::move(info)),
        continuation(std::move(next_page)),
        text_(std::move(text)),
        items_(std::move(items)) {}

  std::span<const std::string_view> items() const { return items_; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  std::string_view operator[](std::size_t index) const { return items_[index]; }

  /// Where the next page begins, to be kept or given to somebody else; empty after the last one.
  std::string continuation;

 private:
  std::shared_ptr<const std::string> text_;  // Shared by copies of the page.
  std::vector<std::string_view> items_;
};

/// Some of a list of things that are not documents.
template <typename T>
struct Page : ResponseInfo {
  std::vector<T> items;
  std::string continuation;
};

/// Asks for page after page. For one thread.
template <typename PageType>
class Pages {
 public:
  /// Reads the page at a continuation; with an empty one, the first.
  using Read = std::function<PageType(const std::string& continuation)>;

  Pages(Read read, std::string continuation)
      : read_(std::move(read)), continuation_(std::move(continuation)) {}

  bool has_more() const { return more_; }
  /// The next page, which may be empty even if it is not the last. Only while has_more().
  PageType next() {
    PageType page = read_(continuation_);
    continuation_ = page.continuation;
    more_ = !continuation_.empty();
    return page;
  }
  /// Calls `take` with each page that is left.
  template <typename Take>
  void for_each(Take take) {
    while (more_) take(next());
  }

 private:
  Read read_;
  std::string continuation_;
  bool more_ = true;
};

using ItemPages = Pages<ItemPage>;

}  // namespace orrery::client
