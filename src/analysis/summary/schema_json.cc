#include "summary/schema_json.h"

#include <set>

#include "trainer/config/schema_doc.h"

namespace trainer {
namespace {

Json MessageJson(const MessageDoc& doc) {
  Json fields = Json::Array();
  for (const FieldDoc& field : doc.fields) {
    fields.Push(Json::Object()
                    .Set("name", field.name)
                    .Set("type", field.type)
                    .Set("default", field.default_value.empty() ? Json() : field.default_value)
                    .Set("comment", field.comment));
  }
  return Json::Object().Set("comment", doc.comment).Set("fields", std::move(fields));
}

}  // namespace

Json MessagesJson(const std::vector<std::string>& names) {
  Json messages = Json::Object();
  std::vector<std::string> left = names;
  std::set<std::string> done;
  while (!left.empty()) {
    const MessageDoc doc = DescribeMessage(left.back());
    left.pop_back();
    if (!done.insert(doc.name).second) continue;
    messages.Set(doc.name, MessageJson(doc));
    for (const FieldDoc& field : doc.fields) {
      const std::string type = field.type.substr(field.type.rfind(' ') + 1);  // after "repeated"
      if (IsMessage(type)) left.push_back(type);
    }
  }
  return messages;
}

}  // namespace trainer
