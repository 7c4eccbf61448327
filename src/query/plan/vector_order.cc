#include "query/plan/vector_order.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "query/functions/functions.h"

namespace orrery::query {
namespace {

// Places among the arguments. The last one is what the container's policy says.
constexpr std::size_t kBruteForce = 2;
constexpr std::size_t kOrderOptions = 3;

std::optional<std::vector<std::string>> document_path(const Expression& expression,
                                                      const Sources& sources) {
  const auto* path = std::get_if<Path>(&expression.node);
  if (path == nullptr || path->source != 0) return std::nullopt;
  std::vector<std::string> names;
  for (const json::Step& step : sources.steps(*path)) {
    const auto* name = std::get_if<std::string>(&step);
    if (name == nullptr) return std::nullopt;
    names.push_back(*name);
  }
  return names;
}

const json::Value* constant_value(const Expression& expression) {
  const auto* literal = std::get_if<Literal>(&expression.node);
  return literal == nullptr ? nullptr : &literal->value;
}

/// The options of the policy and the call together. Nothing when no index may be used.
std::optional<VectorOptions> options_of(const Call& call) {
  VectorOptions options;
  const std::size_t policy_place = call.arguments.size() - 1;
  const json::Value* const policy = constant_value(*call.arguments[policy_place]);
  if (policy == nullptr || !options.take(*policy)) return std::nullopt;
  if (policy_place > kBruteForce) {
    const json::Value* const brute_force = constant_value(*call.arguments[kBruteForce]);
    if (brute_force == nullptr || !brute_force->is_boolean() || brute_force->is_true()) {
      return std::nullopt;
    }
  }
  if (policy_place > kOrderOptions) {
    const json::Value* const given = constant_value(*call.arguments[kOrderOptions]);
    if (given == nullptr || !options.take(*given)) return std::nullopt;
  }
  return options;
}

/// The call, if the most similar ones come first.
const Call* find_call(const Query& tree) {
  if (tree.order_by.size() != 1 || !tree.order_by.front().is_score) return nullptr;
  const OrderItem& item = tree.order_by.front();
  const auto* call = std::get_if<Call>(&item.expression->node);
  if (call == nullptr || call->function == nullptr || call->arguments.size() < kBruteForce + 1 ||
      call->function->hidden != Function::Hidden::VectorPolicy) {
    return nullptr;
  }
  // VectorDistance knows its direction; the score of a ranking may be turned around.
  const bool is_score = call->function->name == "_VECTORSCORE";
  return is_score && !item.is_largest_first ? nullptr : call;
}

}  // namespace

std::optional<VectorOrder> vector_order_of(const PreparedQuery& query) {
  const Query& tree = query.tree();
  if (query.shape() != PreparedQuery::Shape::Ordered || query.inner() || tree.is_distinct ||
      !(tree.top || tree.limit)) {
    return std::nullopt;
  }
  const Call* const call = find_call(tree);
  if (call == nullptr) return std::nullopt;
  VectorOrder order;
  auto options = options_of(*call);
  if (!options) return std::nullopt;
  order.options = *options;
  // The path may be either of the two.
  const Expression* path = call->arguments[0].get();
  const Expression* vector = call->arguments[1].get();
  if (constant_value(*path) != nullptr) std::swap(path, vector);
  auto names = document_path(*path, query.sources());
  const json::Value* const value = constant_value(*vector);
  if (!names || value == nullptr) return std::nullopt;
  auto numbers = read_vector(*value, order.options.type);
  if (!numbers) return std::nullopt;
  order.path = std::move(*names);
  order.vector = std::move(*numbers);
  order.skip = tree.offset ? tree.offset->value : 0;
  order.take = tree.limit ? tree.limit->value : std::numeric_limits<std::uint64_t>::max();
  if (tree.top) order.take = std::min(order.take, tree.top->value);
  return order;
}

}  // namespace orrery::query
