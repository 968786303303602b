// One line of JSON, built field by field.

#ifndef LAB_COMMON_JSON_H_
#define LAB_COMMON_JSON_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lab {

class Json {
 public:
  static std::string Quote(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        quoted += '\\';
        quoted += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x",
                      static_cast<unsigned>(static_cast<unsigned char>(c)));
        quoted += escape;
      } else {
        quoted += c;
      }
    }
    return quoted + '"';
  }

  static std::string List(const std::vector<std::string>& texts) {
    std::string list = "[";
    for (const std::string& text : texts) list += (list.size() > 1 ? "," : "") + Quote(text);
    return list + "]";
  }

  static std::string Object(const std::map<std::string, std::string>& texts) {
    Json object;
    for (const auto& [name, text] : texts) object.Text(name, text);
    return object.Line();
  }

  // `value` is JSON already.
  Json& Raw(std::string_view name, std::string_view value) {
    fields_ += (fields_.empty() ? "" : ",") + Quote(name) + ":";
    fields_ += value;
    return *this;
  }

  Json& Text(std::string_view name, std::string_view value) { return Raw(name, Quote(value)); }
  Json& Whole(std::string_view name, uint64_t value) { return Raw(name, std::to_string(value)); }

  Json& Number(std::string_view name, double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return Raw(name, text);
  }

  std::string Line() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

}  // namespace lab

#endif  // LAB_COMMON_JSON_H_
