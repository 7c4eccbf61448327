#include "base/result.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace orrery {
namespace {

/// Counts how often a value of it was copied.
struct Copied {
  int* count;

  explicit Copied(int& count) : count(&count) {}
  Copied(const Copied& other) : count(other.count) { ++*count; }
  Copied(Copied&&) = default;
  Copied& operator=(const Copied&) = delete;
  Copied& operator=(Copied&&) = delete;
  ~Copied() = default;
};

Result<> require(const Result<Copied>& result) {
  ORRERY_TRY(result);
  return {};
}

Result<Copied> passed_on(Result<Copied> result) {
  ORRERY_TRY(Copied value, std::move(result));
  return value;
}

TEST(ResultTry, TheValueOfANamedResultIsNotCopied) {
  int copies = 0;
  const Result<Copied> result{Copied(copies)};
  EXPECT_TRUE(require(result));
  EXPECT_EQ(copies, 0);
}

TEST(ResultTry, ANamedResultKeepsItsError) {
  const Result<Copied> result = Error(ErrorCode::NotFound, "there is none");
  for (int i = 0; i < 2; ++i) {
    const auto passed = require(result);
    ASSERT_FALSE(passed);
    EXPECT_EQ(passed.error().code(), ErrorCode::NotFound);
    EXPECT_EQ(passed.error().message(), "there is none");
  }
}

TEST(ResultTry, AValueIsMovedToItsName) {
  int copies = 0;
  EXPECT_TRUE(passed_on(Copied(copies)));
  EXPECT_EQ(copies, 0);
  EXPECT_EQ(passed_on(Error(ErrorCode::Conflict, "it exists")).error().message(), "it exists");
}

}  // namespace
}  // namespace orrery
