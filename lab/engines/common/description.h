// An engine's description of itself: `--describe` and `--version`.

#ifndef LAB_COMMON_DESCRIPTION_H_
#define LAB_COMMON_DESCRIPTION_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "json.h"

namespace lab {

// The fields are those of `--describe`, see WORKLOADS.md.
struct Description {
  std::string engine;
  std::string title;
  std::string version;
  // Name and title; the first is what runs without --variant. One with an empty name where there is
  // no choice.
  std::vector<std::pair<std::string, std::string>> variants;
  std::string asynchronous;
  std::string synchronous;
  std::string settings;
  std::vector<std::string> limits;
  // Benchmarks that it cannot run, and why.
  std::map<std::string, std::string> unsupported;

  bool HasVariant(const std::string& name) const {
    for (const auto& variant : variants) {
      if (variant.first == name) return true;
    }
    return name.empty();
  }

  std::string Line() const {
    std::string list = "[";
    for (const auto& [name, words] : variants) {
      list += (list.size() > 1 ? "," : "") + Json().Text("name", name).Text("title", words).Line();
    }
    return Json()
        .Text("engine", engine)
        .Text("title", title)
        .Text("version", version)
        .Raw("variants", list + "]")
        .Text("asynchronous", asynchronous)
        .Text("synchronous", synchronous)
        .Text("settings", settings)
        .Raw("limits", Json::List(limits))
        .Raw("unsupported", Json::Object(unsupported))
        .Line();
  }
};

}  // namespace lab

#endif  // LAB_COMMON_DESCRIPTION_H_
