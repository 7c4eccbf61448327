// CopyFailure: why a copy can't go on.
#pragma once

#include <stdexcept>
#include <string>

namespace orrery::sinks {

/// Ends a copy: it can't go on before somebody has done something about it. what() is for people.
class CopyFailure : public std::runtime_error {
 public:
  /// A way out that depends on how the copy was started.
  enum class Remedy {
    None,
    OtherGroup,    ///< start it as another group
    SharedLeases,  ///< keep the leases in a container, for several processes
  };
  explicit CopyFailure(const std::string& message, Remedy remedy = Remedy::None)
      : std::runtime_error(message), remedy_(remedy) {}

  Remedy remedy() const { return remedy_; }

 private:
  Remedy remedy_;
};

}  // namespace orrery::sinks
