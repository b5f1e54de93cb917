#include "trainer/config/overrides.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "checks/finite_values.h"
#include "net.pb.h"
#include "text/parse_errors.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/synonyms.h"
#include "trainer/base/text/text.h"
#include "trainer/config/name_pattern.h"
#include "trainer/config/net_spec.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Keeps the parser's complaint instead of printing it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string& message) override {
    if (text.empty()) text = message;
  }
  std::string text;
};

// Returns whether the layer's include rules may keep it in a phase: it has none, or one that names
// this phase or no phase. Levels and stages are not considered.
bool HasRuleFor(const caffe::LayerParameter& layer, const std::string& phase) {
  if (layer.include_size() == 0) return true;
  return std::any_of(layer.include().begin(), layer.include().end(), [&](const auto& rule) {
    return !rule.has_phase() || caffe::Phase_Name(rule.phase()) == phase;
  });
}

// Returns the names of all fields of a message, for suggestions.
std::vector<std::string> OverridableFields(const google::protobuf::Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

// Returns the index layer[NAME,PHASE] without its phase, and sets *phase to "TRAIN", "TEST" or, if
// the index has none, to "".
std::string WithoutPhase(const std::string& index, std::string* phase) {
  for (const char* const known : {"TRAIN", "TEST"}) {
    const std::string end = Join(",", known);
    if (!index.ends_with(end)) continue;
    *phase = known;
    return index.substr(0, index.size() - end.size());
  }
  phase->clear();
  return index;
}

// Returns whether ']' ends an index that begins with `index`. In a pattern, /conv[0-9]/, only the
// one after the last slash, or after the phase, does.
bool EndsIndex(const std::string& index) {
  if (!index.starts_with('/')) return true;
  std::string phase;
  return IsPattern(WithoutPhase(index, &phase));
}

// Returns a value as prototxt has it: the value of a string field in quotes, unless it has them
// already or is a list; all others unchanged.
std::string AsText(const FieldDescriptor* field, const std::string& value) {
  const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (!is_text || value.starts_with('"') || value.starts_with('\'') || value.starts_with('[')) {
    return value;
  }
  std::string quoted = "\"";
  for (const char c : value)
    quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return quoted + "\"";
}

}  // namespace

Overrides::Overrides(const std::vector<std::string>& assignments) {
  for (const std::string& text : assignments) {
    Item& item = items_.emplace_back();
    item.text = text;
    Part part;
    bool in_index = false;
    size_t i = 0;
    for (; i < text.size() && (in_index || text[i] != '='); ++i) {
      const char c = text[i];
      if (!in_index && c == '.') {
        item.path.push_back(std::exchange(part, {}));
      } else if (!in_index && c == '[') {
        in_index = true;
      } else if (in_index && c == ']' && EndsIndex(part.index)) {
        in_index = false;
      } else {
        (in_index ? part.index : part.field) += c;
      }
    }
    item.path.push_back(part);
    const bool empty_part = std::any_of(item.path.begin(), item.path.end(),
                                        [](const Part& p) { return p.field.empty(); });
    if (i >= text.size() || in_index || empty_part) {
      Fail(item, "not of the form key=value; write e.g. --set base_lr=0.05");
    }
    item.value = text.substr(i + 1);
  }
}

void Overrides::Fail(const Item& item, const std::string& message) {
  throw Error(ErrorCode::kUsage, Join("--set ", item.text, ": ", message));
}

void Overrides::Set(const Item& item, size_t depth, Message* message) {
  if (depth + 1 == item.path.size()) return Assign(item, message);
  const Part& part = item.path[depth];
  const auto* reflection = message->GetReflection();
  const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(part.field);
  if (field == nullptr) {
    Fail(item, Join("there is no field '", part.field, "'.",
                    DidYouMean(part.field, OverridableFields(message->GetDescriptor()))));
  }
  if (field->message_type() == nullptr) {
    Fail(item, Join("'", part.field, "' has no fields of its own"));
  }
  if (!field->is_repeated()) {
    return Set(item, depth + 1, reflection->MutableMessage(message, field));
  }
  const int size = reflection->FieldSize(*message, field);
  const int index = ParseNumber<int>(part.index).value_or(-1);
  if (index < 0 || index >= size) {
    Fail(item, Join("'", part.field, "' is a list; give the number of an element, such as ",
                    part.field, "[0]; number of elements: ", size));
  }
  Set(item, depth + 1, reflection->MutableRepeatedMessage(message, field, index));
}

void Overrides::Assign(const Item& item, Message* message) {
  const Part& part = item.path.back();
  const auto* reflection = message->GetReflection();
  const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(part.field);
  if (field == nullptr) {
    Fail(item, Join("there is no field '", part.field, "'.",
                    DidYouMean(part.field, OverridableFields(message->GetDescriptor()))));
  }
  if (field->is_repeated() && part.index.empty() && item.value.empty()) {
    return reflection->ClearField(message, field);
  }
  const std::unique_ptr<Message> parsed(message->New());
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.AllowPartialMessage(true);
  if (!parser.ParseFromString(Join(part.field, ": ", AsText(field, item.value)), parsed.get())) {
    Fail(item, Join("'", item.value, "' is not a value of ", part.field, ": ",
                    ExplainValue(*field, error.text)));
  }
  if (const std::string fault = NotFinite(*parsed); !fault.empty()) Fail(item, fault);
  if (part.index.empty()) {
    reflection->ClearField(message, field);
    message->MergeFrom(*parsed);
    return;
  }
  const int index = ParseNumber<int>(part.index).value_or(-1);
  if (!field->is_repeated() || index < 0 || index >= reflection->FieldSize(*message, field) ||
      reflection->FieldSize(*parsed, field) != 1) {
    Fail(item, Join("there is no element '", part.index, "' in ", part.field, " to change"));
  }
  // The new value is appended, swapped with the old one, and the old one is removed.
  const int last = reflection->FieldSize(*message, field);
  message->MergeFrom(*parsed);
  reflection->SwapElements(message, field, index, last);
  reflection->RemoveLast(message, field);
}

void Overrides::ApplyTo(Message* message) {
  for (Item& item : items_) {
    if (message->GetDescriptor()->FindFieldByName(item.path[0].field) == nullptr) {
      for (std::string& name : OverridableFields(message->GetDescriptor())) {
        item.near.push_back(std::move(name));
      }
      continue;
    }
    item.used = item.of_message = true;
    Set(item, 0, message);
  }
}

void Overrides::ApplyToLayers(Item* item, NetSpec* net) {
  std::string phase;
  const NamePattern names(WithoutPhase(item->path[0].index, &phase), Join("--set ", item->text));
  if (item->path.size() < 2) Fail(*item, "it names a layer, but no field of the layer");
  for (LayerSpec& layer : net->layers) {
    item->near.push_back(layer.name());
    if (!names.Matches(layer.name())) continue;
    if (!phase.empty() && !HasRuleFor(layer.proto(), phase)) continue;
    Set(*item, 1, &layer.mutable_proto());
    item->used = true;
  }
}

void Overrides::ApplyTo(NetSpec* net) {
  for (Item& item : items_) {
    const std::string& field = item.path[0].field;
    if (field == "layer") {
      ApplyToLayers(&item, net);
    } else if (item.of_message) {
      continue;
    } else if (net->proto.GetDescriptor()->FindFieldByName(field) != nullptr) {
      Set(item, 0, &net->proto);
      item.used = true;
    } else {
      item.near.push_back("layer");
      for (const LayerSpec& layer : net->layers) item.layers.push_back(layer.name());
    }
  }
}

std::string Overrides::LayerMeant(const Item& item, bool exactly) {
  const Part& part = item.path[0];
  if (item.path.size() < 2 || !part.index.empty()) return "";
  const bool is_name = std::ranges::find(item.layers, part.field) != item.layers.end();
  const std::string name = is_name ? part.field : Nearest(part.field, item.layers);
  if (name.empty() || is_name != exactly) return "";
  return Join(" Did you mean 'layer[", name, "]", item.text.substr(part.field.size()), "'?");
}

void Overrides::CheckAllUsed() const {
  for (const Item& item : items_) {
    if (item.used) continue;
    const Part& part = item.path[0];
    const bool layer = part.field == "layer";
    const std::string& word = layer ? part.index : part.field;
    if (layer && word.starts_with('/')) Fail(item, NoMatch(word, item.near));
    if (layer && word.empty()) {
      Fail(item,
           "it names no layer; write layer[NAME].FIELD=VALUE, such as layer[conv1].freeze=true");
    }
    std::string near = LayerMeant(item, /*exactly=*/true);
    if (near.empty()) near = DidYouMean(word, item.near);
    if (near.empty()) near = LayerMeant(item, /*exactly=*/false);
    const std::string_view advice = near.empty() && !layer ? AdviceFor(word) : "";
    Fail(item, Join("there is no ", layer ? "layer" : "field", " '", word, "'.", near,
                    advice.empty() ? "" : " ", advice));
  }
}

}  // namespace trainer
