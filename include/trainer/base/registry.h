#pragma once
// Maps names to functions that create objects. A static object in an implementation's own file
// registers it, so a new implementation changes no list.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Makes objects derived from Base from Args. Filled before main() by one thread, then read only.
template <class Base, class... Args>
class Registry {
 public:
  using Maker = std::function<std::unique_ptr<Base>(Args...)>;

  static Registry& Get() {
    static Registry registry;
    return registry;
  }

  // Registers a type. Throws kInternal if the name is taken, because two files then define one
  // type.
  void Add(const std::string& name, Maker maker) {
    if (!makers_.emplace(name, std::move(maker)).second) {
      throw Error(ErrorCode::kInternal, Join("'", name, "' is registered twice"));
    }
  }

  bool Has(const std::string& name) const { return makers_.count(name) > 0; }

  // Creates an object of a registered type. The caller checks the name with Has before, and reports
  // an unknown one with the line of the user's file.
  std::unique_ptr<Base> Make(const std::string& name, Args... args) const {
    return makers_.at(name)(std::forward<Args>(args)...);
  }

  // Returns all names in alphabetical order.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : makers_) names.push_back(entry.first);
    return names;
  }

 private:
  std::map<std::string, Maker> makers_;
};

// A static Registration<Base, T, Args...> enters T under a name.
template <class Base, class T, class... Args>
struct Registration {
  explicit Registration(const std::string& name) {
    Registry<Base, Args...>::Get().Add(name, [](Args... args) {
      return std::unique_ptr<Base>(new T(std::forward<Args>(args)...));
    });
  }
};

}  // namespace trainer
