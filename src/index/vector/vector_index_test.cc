// How many of the most similar vectors the approximate index finds.
#include "index/vector/vector_index.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::index {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Draw {
 public:
  Draw(std::uint32_t seed, std::size_t dimensions) : random_(seed), dimensions_(dimensions) {}
  Floats operator()() {
    Floats vector(dimensions_);
    for (float& number : vector) number = normal_(random_);
    return vector;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  std::size_t dimensions_;
};

std::vector<std::uint64_t> numbers(const std::vector<VectorIndex::Found>& found) {
  std::vector<std::uint64_t> numbers;
  for (const auto& one : found) numbers.push_back(one.number);
  return numbers;
}

/// The most similar ones among all, by looking at each.
std::vector<std::uint64_t> exact(const std::vector<Floats>& vectors, const Floats& query,
                                 std::size_t count, DistanceFunction function) {
  std::vector<std::pair<float, std::uint64_t>> scores;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (vectors[i].empty()) continue;
    scores.emplace_back(-similarity(vector_distance(query, vectors[i], function), function), i);
  }
  std::ranges::partial_sort(scores, scores.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<std::uint64_t> found;
  for (std::size_t i = 0; i < count; ++i) found.push_back(scores[i].second);
  return found;
}

double recall(VectorIndex& index, const std::vector<Floats>& vectors, Draw& draw,
              DistanceFunction function) {
  constexpr std::size_t kCount = 10;
  constexpr std::size_t kQueries = 100;
  constexpr std::size_t kBreadth = 150;
  std::size_t hits = 0;
  for (std::size_t i = 0; i < kQueries; ++i) {
    const Floats query = draw();
    const auto found = numbers(index.search(query, kCount, kBreadth));
    const std::set<std::uint64_t> unique(found.begin(), found.end());
    EXPECT_EQ(unique.size(), kCount);
    for (const auto number : exact(vectors, query, kCount, function)) hits += unique.count(number);
  }
  return static_cast<double>(hits) / (kCount * kQueries);
}

constexpr std::size_t kDimensions = 32;

TEST(VectorIndex, RecallIsHighAmongTenThousandVectors) {
  const std::uint32_t seed = 42;
  SCOPED_TRACE(seed);
  constexpr std::size_t kVectors = 10'000;
  Draw draw(seed, kDimensions);
  VectorIndex index({.dimensions = kDimensions, .vectors_max = kVectors});
  std::vector<Floats> vectors;
  for (std::size_t i = 0; i < kVectors; ++i) {
    vectors.push_back(draw());
    ASSERT_TRUE(index.add(i, vectors.back()));
  }
  const double found = recall(index, vectors, draw, DistanceFunction::Cosine);
  RecordProperty("recall", std::to_string(found));
  EXPECT_GE(found, 0.9);
}

class Recall : public testing::TestWithParam<DistanceFunction> {};

TEST_P(Recall, IsHighAfterMostVectorsChanged) {
  const std::uint32_t seed = 43;
  SCOPED_TRACE(seed);
  constexpr std::size_t kVectors = 1500;
  Draw draw(seed, kDimensions);
  VectorIndex index({.dimensions = kDimensions, .function = GetParam(), .vectors_max = kVectors});
  std::vector<Floats> vectors;
  for (std::size_t i = 0; i < kVectors; ++i) {
    vectors.push_back(draw());
    ASSERT_TRUE(index.add(i, vectors.back()));
  }
  for (std::size_t i = 0; i < kVectors; i += 3) {
    EXPECT_TRUE(index.remove(i));
    vectors[i].clear();
    vectors[i + 1] = draw();
    ASSERT_TRUE(index.add(i + 1, vectors[i + 1]));
  }
  EXPECT_GE(recall(index, vectors, draw, GetParam()), 0.9);
}

INSTANTIATE_TEST_SUITE_P(Functions, Recall,
                         testing::Values(DistanceFunction::Cosine, DistanceFunction::Euclidean,
                                         DistanceFunction::DotProduct));

TEST(VectorIndex, FindsTheBestFirstWithItsScore) {
  VectorIndex index({.dimensions = 2, .function = DistanceFunction::Euclidean, .vectors_max = 100});
  EXPECT_THAT(index.search(Floats{0, 0}, 3, 10), IsEmpty());
  for (std::uint64_t i = 1; i <= 9; ++i) {
    EXPECT_TRUE(index.add(i, Floats{static_cast<float>(i), 0}));
  }
  const auto found = index.search(Floats{0, 0}, 3, 10);
  EXPECT_THAT(numbers(found), ElementsAre(1, 2, 3));
  EXPECT_FLOAT_EQ(found[0].score, -1);
  EXPECT_FLOAT_EQ(found[2].score, -3);
  EXPECT_THAT(numbers(index.search(Floats{10, 0}, 2, 1)), ElementsAre(9, 8));
  EXPECT_EQ(index.search(Floats{0, 0}, 50, 1).size(), 9U);
}

TEST(VectorIndex, ScoresAreThoseOfTheFunction) {
  for (const auto function : {DistanceFunction::Cosine, DistanceFunction::DotProduct}) {
    VectorIndex index({.dimensions = 2, .function = function, .vectors_max = 10});
    index.add(1, Floats{3, 4});
    const Floats query = {1, 2};
    EXPECT_NEAR(index.search(query, 1, 1)[0].score, vector_distance(query, Floats{3, 4}, function),
                1e-5);
  }
}

TEST(VectorIndex, WhatWasRemovedOrReplacedIsNotFound) {
  VectorIndex index({.dimensions = 1, .function = DistanceFunction::Euclidean, .vectors_max = 100});
  for (std::uint64_t i = 0; i < 20; ++i) index.add(i, Floats{static_cast<float>(i)});
  EXPECT_TRUE(index.remove(3));
  EXPECT_FALSE(index.remove(3));
  EXPECT_TRUE(index.add(4, Floats{100}));
  EXPECT_EQ(index.size(), 19U);
  EXPECT_THAT(numbers(index.search(Floats{3.9F}, 2, 10)), ElementsAre(5, 2));
  EXPECT_THAT(numbers(index.search(Floats{99}, 1, 10)), ElementsAre(4));
  for (std::uint64_t i = 0; i < 20; ++i) index.remove(i);
  EXPECT_EQ(index.size(), 0U);
  EXPECT_THAT(index.search(Floats{3}, 2, 10), IsEmpty());
  EXPECT_TRUE(index.add(7, Floats{7}));
  EXPECT_THAT(numbers(index.search(Floats{3}, 2, 10)), ElementsAre(7));
}

TEST(VectorIndex, HasNoRoomForMoreThanItsBound) {
  VectorIndex index({.dimensions = 1, .function = DistanceFunction::Euclidean, .vectors_max = 4});
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(index.add(i, Floats{static_cast<float>(i)}));
  EXPECT_FALSE(index.add(9, Floats{9}));
  EXPECT_TRUE(index.add(3, Floats{30}));
  EXPECT_TRUE(index.remove(0));
  EXPECT_TRUE(index.add(9, Floats{9}));
  EXPECT_THAT(numbers(index.search(Floats{0}, 9, 9)), ElementsAre(1, 2, 9, 3));
  EXPECT_GT(VectorIndex::bytes_max({.dimensions = 32, .vectors_max = 1000}), 1000U * 32 * 4);
}

TEST(VectorIndex, RefusesWhatCannotBeCompared) {
  VectorIndex index({.dimensions = 2, .vectors_max = 10});
  EXPECT_FALSE(index.add(1, Floats{1}));
  EXPECT_FALSE(index.add(1, Floats{0, 0}));
  EXPECT_FALSE(index.add(1, Floats{INFINITY, 0}));
  EXPECT_FALSE(index.add(1, Floats{NAN, 0}));
  EXPECT_TRUE(index.add(1, Floats{1, 0}));
  EXPECT_THAT(index.search(Floats{1, 2, 3}, 1, 1), IsEmpty());
  EXPECT_THAT(index.search(Floats{0, 0}, 1, 1), IsEmpty());
  // Its replacement was refused, so it is gone.
  EXPECT_FALSE(index.add(1, Floats{0, 0}));
  EXPECT_EQ(index.size(), 0U);
}

TEST(VectorIndex, ManyEqualVectorsAreAllFound) {
  VectorIndex index(
      {.dimensions = 2, .function = DistanceFunction::Euclidean, .vectors_max = 1000});
  for (std::uint64_t i = 0; i < 500; ++i) index.add(i, Floats{1, 1});
  EXPECT_EQ(index.search(Floats{1, 1}, 10, 50).size(), 10U);
}

}  // namespace
}  // namespace orrery::index
