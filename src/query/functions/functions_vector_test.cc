// Vectors: reading them, and how similar they are.
#include "query/functions/functions.h"

#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/vector.h"

namespace orrery::query {
namespace {

using json::Value;
using testing::ElementsAre;

constexpr std::string_view kNoValue = "-";
constexpr std::string_view kNoPolicy = kNoValue;

/// The value of a function of these JSON texts, the policy last; "-" is undefined, both ways.
std::string said_of_vector(std::string_view name, std::vector<std::string_view> texts) {
  std::vector<Value> values;
  for (const auto text : texts) {
    values.push_back(text == kNoValue ? Value() : Value::of_checked(text));
  }
  std::vector<const Value*> arguments;
  for (const auto& value : values) arguments.push_back(&value);
  for (const Function& function : vector_functions()) {
    if (function.name != name) continue;
    EXPECT_EQ(function.hidden, Function::Hidden::VectorPolicy);
    EXPECT_TRUE(function.takes_undefined);
    const Value value = function.call(arguments);
    return value.is_undefined() ? std::string(kNoValue) : value.to_text();
  }
  return "no such function";
}

std::string distance(std::string_view a, std::string_view b, std::string_view options = "{}",
                     std::string_view policy = kNoPolicy) {
  return said_of_vector("VECTORDISTANCE", {a, b, "false", options, policy});
}

TEST(Vector, IsReadFromAnArrayOfNumbers) {
  const auto read = [](std::string_view text, VectorDataType type = VectorDataType::Float32) {
    return read_vector(Value::of_checked(text), type);
  };
  EXPECT_THAT(*read("[1, -2.5,3e1 ]"), ElementsAre(1.0F, -2.5F, 30.0F));
  EXPECT_THAT(*read("[ 1e-999,1e999]"), ElementsAre(0.0F, INFINITY));
  EXPECT_THAT(*read("[-1e300]"), ElementsAre(-INFINITY));
  for (const auto text : {"[]", "[ ]", "[1,\"2\"]", "[[1]]", "[null]", "{}", "7", "\"[1]\""}) {
    EXPECT_FALSE(read(text)) << text;
  }
  EXPECT_THAT(*read("[-128,127]", VectorDataType::Int8), ElementsAre(-128.0F, 127.0F));
  EXPECT_FALSE(read("[128]", VectorDataType::Int8));
  EXPECT_FALSE(read("[0.5]", VectorDataType::Int8));
  EXPECT_THAT(*read("[0,255]", VectorDataType::UInt8), ElementsAre(0.0F, 255.0F));
  EXPECT_FALSE(read("[-1]", VectorDataType::UInt8));
  EXPECT_FALSE(read("[256]", VectorDataType::UInt8));
}

TEST(Vector, IsTheSameReadFromATree) {
  Value tree = Value::array();
  tree.elements().push_back(Value::number(std::int64_t{3}));
  tree.elements().push_back(Value::number(0.5));
  EXPECT_THAT(*read_vector(tree), ElementsAre(3.0F, 0.5F));
  EXPECT_FALSE(read_vector(tree, VectorDataType::Int8));
  tree.elements().push_back(Value::null());
  EXPECT_FALSE(read_vector(tree));
  EXPECT_FALSE(read_vector(Value::array()));
}

TEST(Vector, DistanceIsTheCosineUnlessSomethingElseIsSaid) {
  EXPECT_EQ(said_of_vector("VECTORDISTANCE", {"[1,0]", "[0,2]", kNoPolicy}), "0");
  EXPECT_EQ(said_of_vector("VECTORDISTANCE", {"[1,2,3]", "[2,4,6]", kNoPolicy}), "1");
  EXPECT_EQ(said_of_vector("VECTORDISTANCE", {"[1,2,3]", "[-1,-2,-3]", "true", kNoPolicy}), "-1");
  EXPECT_EQ(distance("[1,1]", "[1,0]"), "0.70710677");
  EXPECT_EQ(distance("[1,2]", "[3,4]", R"({"distanceFunction":"dotproduct"})"), "11");
  EXPECT_EQ(distance("[1,2]", "[4,6]", R"({"distanceFunction":"euclidean"})"), "5");
}

TEST(Vector, DistanceFunctionsAndTypesAreNamedInAnyCase) {
  for (const auto dot : {"dotproduct", "dotProduct", "DotProduct", "DOTPRODUCT"}) {
    EXPECT_EQ(find_distance_function(dot), DistanceFunction::DotProduct);
  }
  EXPECT_EQ(find_distance_function("Cosine"), DistanceFunction::Cosine);
  EXPECT_EQ(find_distance_function("EUCLIDEAN"), DistanceFunction::Euclidean);
  EXPECT_EQ(find_distance_function("dot product"), std::nullopt);
  EXPECT_EQ(find_vector_data_type("Float32"), VectorDataType::Float32);
  EXPECT_EQ(find_vector_data_type("UINT8"), VectorDataType::UInt8);
}

TEST(Vector, OptionsGoBeforeThePolicy) {
  constexpr std::string_view kPolicy = R"({"distanceFunction":"euclidean","dataType":"int8"})";
  EXPECT_EQ(said_of_vector("VECTORDISTANCE", {"[1,2]", "[4,6]", kPolicy}), "5");
  EXPECT_EQ(said_of_vector("VECTORDISTANCE", {"[1,2.5]", "[4,6]", kPolicy}), kNoValue);
  EXPECT_EQ(distance("[1,2]", "[4,6]", R"({"distanceFunction":"dotproduct"})", kPolicy), "16");
  EXPECT_EQ(distance("[0,2.5]", "[0,6]", R"({"dataType":"float32"})", kPolicy), "3.5");
}

TEST(Vector, ScoreIsLargerForTheMoreSimilar) {
  const auto score = [](std::string_view function) {
    return said_of_vector("_VECTORSCORE",
                          {"[1,2]", "[4,6]", "false",
                           R"({"distanceFunction":")" + std::string(function) + "\"}", kNoPolicy});
  };
  EXPECT_EQ(score("euclidean"), "-5");
  EXPECT_EQ(score("dotproduct"), "16");
  EXPECT_EQ(said_of_vector("_VECTORSCORE", {"[1,0]", "[1,0]", kNoPolicy}), "1");
}

TEST(Vector, WhatCannotBeComparedIsUndefined) {
  EXPECT_EQ(distance("[1,2]", "[1,2,3]"), kNoValue);
  EXPECT_EQ(distance("[1,\"2\"]", "[1,2]"), kNoValue);
  EXPECT_EQ(distance("[1,2]", "7"), kNoValue);
  EXPECT_EQ(distance(kNoValue, "[1,2]"), kNoValue);
  EXPECT_EQ(distance("[1,2]", kNoValue), kNoValue);
  EXPECT_EQ(distance("[]", "[]"), kNoValue);
  EXPECT_EQ(distance("[0,0]", "[1,2]"), kNoValue);
  EXPECT_EQ(distance("[1e30]", "[1e30]", R"({"distanceFunction":"dotproduct"})"), kNoValue);
}

TEST(Vector, OptionsThatAreNoneMakeItUndefined) {
  for (const auto options :
       {R"({"distanceFunction":"manhattan"})", R"({"distanceFunction":7})",
        R"({"dataType":"int4"})", R"({"searchListSizeMultiplier":0})",
        R"({"searchListSizeMultiplier":101})", R"({"searchListSizeMultiplier":1.5})",
        R"({"quantizedVectorListMultiplier":"5"})", R"({"filterPriority":2})",
        R"({"distancefunction":"cosine"})", "7", "null"}) {
    EXPECT_EQ(distance("[1,2]", "[1,2]", options), kNoValue) << options;
  }
  EXPECT_EQ(distance("[1,2]", "[1,2]", kNoValue), kNoValue);
  EXPECT_EQ(said_of_vector("VECTORDISTANCE", {"[1]", "[1]", "1", kNoPolicy}), kNoValue);
  EXPECT_EQ(said_of_vector("VECTORDISTANCE", {"[1]", "[1]", kNoValue, kNoPolicy}), kNoValue);
  EXPECT_EQ(distance("[1,2]", "[1,2]",
                     R"({"searchListSizeMultiplier":10,"quantizedVectorListMultiplier":5,)"
                     R"("filterPriority":0.5,"dataType":"float32"})"),
            "1");
}

TEST(Vector, AConstantThatWasReadForOneTypeIsReadAgainForAnother) {
  EXPECT_EQ(distance("[1.5]", "[1.5]"), "1");
  EXPECT_EQ(distance("[1.5]", "[1.5]", R"({"dataType":"int8"})"), kNoValue);
  EXPECT_EQ(distance("[1.5]", "[1.5]"), "1");
  EXPECT_EQ(distance("[-1.5]", "[1.5]"), "-1");
}

TEST(Vector, SumsOfManyDimensionsAreRight) {
  const std::uint32_t seed = 3;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> number;
  for (const std::size_t size : {1U, 3U, 15U, 16U, 17U, 100U, 1536U}) {
    Floats a(size);
    Floats b(size);
    double dot = 0, square_a = 0, square_b = 0, square = 0;
    for (std::size_t i = 0; i < size; ++i) {
      a[i] = number(random);
      b[i] = number(random);
      dot += double{a[i]} * b[i];
      square_a += double{a[i]} * a[i];
      square_b += double{b[i]} * b[i];
      square += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    }
    EXPECT_NEAR(vector_distance(a, b, DistanceFunction::DotProduct), dot, 1e-4 * size);
    EXPECT_NEAR(vector_distance(a, b, DistanceFunction::Cosine),
                dot / std::sqrt(square_a * square_b), 1e-5);
    EXPECT_NEAR(vector_distance(a, b, DistanceFunction::Euclidean) / std::sqrt(square), 1, 1e-5);
  }
}

TEST(Vector, AFloatIsWrittenWithAsFewDigitsAsItNeeds) {
  EXPECT_EQ(Value::number(shortest_double(0.1F)).to_text(), "0.1");
  EXPECT_EQ(Value::number(shortest_double(1.0F / 3)).to_text(), "0.33333334");
  EXPECT_EQ(Value::number(shortest_double(16777216.0F)).to_text(), "16777216");
  EXPECT_EQ(Value::number(shortest_double(-0.0F)).to_text(), Value::number(-0.0).to_text());
}

}  // namespace
}  // namespace orrery::query
