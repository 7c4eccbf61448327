#include "executor/container_settings.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "protocol/container/index_path.h"
#include "protocol/container/search_policies.h"
#include "query/bind/computed.h"

namespace orrery::executor {
namespace {

/// Members of `/a/"b c"`, as policies write paths.
std::optional<query::Settings::MemberPath> member_path(const Json* path) {
  if (path == nullptr || !path->is_string()) return std::nullopt;
  const auto parsed = IndexPath::parse(path->get_ref<const std::string&>());
  if (!parsed) return std::nullopt;
  query::Settings::MemberPath names;
  for (const IndexPath::Step& step : parsed->steps) names.push_back(step.name);
  return names;
}

std::string text_member(const Json& object, std::string_view name) {
  const Json* value = find_member(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

/// Calls `visit` for each element of an array member.
template <typename Visit>
void for_each_in(const Json* object, std::string_view name, Visit visit) {
  const Json* list = object == nullptr ? nullptr : find_member(*object, name);
  if (list == nullptr || !list->is_array()) return;
  for (const Json& each : *list) visit(each);
}

/// The names of a path of the document; nothing where it leads through elements by number.
std::optional<std::vector<std::string_view>> plain_names(const std::vector<json::Step>& steps) {
  std::vector<std::string_view> names;
  for (const json::Step& step : steps) {
    const auto* name = std::get_if<std::string>(&step);
    if (name == nullptr) return std::nullopt;
    names.push_back(*name);
  }
  return names;
}

}  // namespace

query::Settings query_settings(const ContainerDefinition& definition) {
  query::Settings settings;
  settings.surroundings = query::surroundings_now();
  settings.surroundings.is_planar = definition.spatial_kind() == IndexKind::PlaneCells;
  if (const Json* policy = definition.member("fullTextPolicy")) {
    const std::string by_default = text_member(*policy, "defaultLanguage");
    if (const auto language = full_text_language(by_default); !language.empty()) {
      settings.default_language = language;
    }
    for_each_in(policy, "fullTextPaths", [&](const Json& each) {
      auto path = member_path(find_member(each, "path"));
      const std::string named = text_member(each, "language");
      if (const auto language = full_text_language(named); path && !language.empty()) {
        settings.languages.push_back({std::move(*path), std::string(language)});
      }
    });
  }
  for_each_in(definition.member("vectorEmbeddingPolicy"), "vectorEmbeddings",
              [&](const Json& each) {
                auto path = member_path(find_member(each, "path"));
                if (!path) return;
                settings.vectors.push_back({std::move(*path), text_member(each, "distanceFunction"),
                                            text_member(each, "dataType")});
              });
  if (const Json* computed = definition.member("computedProperties")) {
    for (const Json& each : *computed) {
      settings.computed.push_back({text_member(each, "name"), text_member(each, "query")});
    }
  }
  return settings;
}

Result<> check_computed_properties(const ContainerDefinition& definition) {
  return query::check_computed(query_settings(definition));
}

Result<> check_order_by(const query::PreparedQuery& query, const ContainerDefinition& definition) {
  const query::Query& tree = query.tree();
  if (query.shape() != query::PreparedQuery::Shape::Ordered || query.inner()) return {};
  std::vector<IndexSpec::Part> parts;
  for (const query::OrderItem& item : tree.order_by) {
    const auto* path = std::get_if<query::Path>(&item.expression->node);
    if (path == nullptr || path->source != 0) return {};
    const auto names = plain_names(query.sources().steps(*path));
    if (!names) return {};
    if (tree.order_by.size() == 1 && !definition.indexes(*names)) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("The order by item '/{}' is excluded from the index: include its "
                               "path in the container's indexing policy.",
                               fmt::join(*names, "/")));
    }
    IndexPath index_path;
    for (const std::string_view name : *names) index_path.steps.push_back({std::string(name)});
    parts.push_back({std::move(index_path), item.is_descending.value_or(false)});
  }
  if (parts.size() < 2) return {};
  auto inverted = parts;
  for (IndexSpec::Part& part : inverted) part.is_descending = !part.is_descending;
  const auto composites = definition.composite_indexes();
  const bool is_served = std::ranges::any_of(composites, [&](const IndexSpec& composite) {
    return composite.parts == parts || composite.parts == inverted;
  });
  if (is_served) return {};
  return Error(ErrorCode::BadRequest,
               "The order by query does not have a corresponding composite index that it can be "
               "served from.");
}

}  // namespace orrery::executor
