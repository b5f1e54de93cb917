#include "text/parse_errors.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <vector>

#include "trainer/base/text/synonyms.h"
#include "trainer/base/text/text.h"
#include "trainer/config/checks/known_forks.h"

namespace trainer {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Returns piece number `index` of the pieces between double quotes in a complaint; "" if it has
// fewer.
std::string Quoted(const std::string& text, int index) {
  size_t at = 0;
  for (int i = 0; i < 2 * index + 1; ++i) {
    at = text.find('"', at);
    if (at == std::string::npos) return "";
    ++at;
  }
  return text.substr(at, text.find('"', at) - at);
}

std::vector<std::string> FieldNames(const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& values) {
  std::vector<std::string> names;
  for (int i = 0; i < values.value_count(); ++i) names.push_back(values.value(i)->name());
  return names;
}

// Returns what a value of the field looks like, for "stride needs a whole number, 0 or more".
std::string TypeWords(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number, 0 or more";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "one of " + JoinList(ValueNames(*field.enum_type()));
    case FieldDescriptor::CPPTYPE_STRING:
      return "text in quotes";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "fields in braces: " + field.name() + " { ... }";
  }
  return "";
}

// Returns the user's word for a file with this message: "a solver", "a net".
std::string FileWords(const Descriptor& root) {
  if (root.name() == "SolverParameter") return "a solver";
  if (root.name() == "NetParameter") return "a net";
  return root.name();
}

// Explains one complaint by the messages that are open at its place.
class Explainer {
 public:
  Explainer(const ParserComplaint& complaint, const Descriptor& root, const ParsedText& parsed)
      : complaint_(complaint),
        root_(root),
        parsed_(parsed),
        place_{complaint.line + 1, complaint.column + 1},
        context_(ScanText(parsed.content, place_)) {
    types_.push_back(&root);
    for (size_t i = 1; i < context_.open.size() && types_.back() != nullptr; ++i) {
      const FieldDescriptor* field = types_.back()->FindFieldByName(context_.open[i].name);
      types_.push_back(field != nullptr ? field->message_type() : nullptr);
    }
  }

  // Chooses the explanation by the words of protobuf's message, because it has no error codes.
  Explanation Explain() {
    const std::string& text = complaint_.text;
    const std::optional<TextPlace> here = context_.open.back().field_place;
    const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
    if (has("missing required")) return {MissingRequired(), {}};
    if (has("has no field named")) {
      return {UnknownField(), IsOfOuter() ? std::nullopt : here};
    }
    if (has("specified multiple times")) return {GivenTwice(), here};
    if (has("Unknown enumeration value")) return {UnknownValue(), here};
    if (AtEnd() && context_.open.size() > 1) return {Unclosed(), {}};
    if (const FieldDescriptor* field = WrongValue()) {
      if (text.starts_with("Invalid value")) place_ = context_.last_word;
      const bool brace = text.starts_with("Expected \"{\"");  // what follows would mislead
      return {At(place_, Join(field->name(), " needs ", TypeWords(*field), "; the file has ",
                              WordAt(place_))),
              brace ? std::nullopt : here};
    }
    if (text == "Expected identifier, got: }") {
      return {At(place_, "this '}' has no matching '{': add the missing '{', or remove this '}'"),
              {}};
    }
    return {At(place_, Plain()), {}};
  }

 private:
  // Returns whether the parser complained at the end of the text.
  bool AtEnd() const { return !(place_ < EndOf(parsed_.content)); }

  // Returns the user's name for the innermost open message.
  std::string Here() const {
    return context_.open.size() == 1 ? FileWords(root_) : context_.open.back().name;
  }

  // Returns an error at `place` with the line and a caret.
  Error At(TextPlace place, const std::string& message) const {
    return Error(ErrorCode::kConfig, {parsed_.file, place.line, place.column},
                 Join(message, "\n", QuoteLine(LineOf(parsed_.content, place.line), place.column)));
  }

  // Explains an unknown field: a missing brace, a fork of Caffe, a slip, or the messages that have
  // it.
  Error UnknownField() const {
    const std::string name = Quoted(complaint_.text, 1);
    std::string message = Join(Here(), " has no field '", name, "'.");
    const Descriptor* type = types_.back();
    const std::string_view fork = ForkOfField(name);
    if (IsOfOuter()) {
      message += Join(" Is the '}' of '", Here(), "' missing, opened in line ",
                      context_.open.back().opened.line, "?");
    } else if (!fork.empty()) {
      message += Join(" It belongs to a fork of Caffe (", fork, ") and is not supported here");
    } else if (type != nullptr) {
      const std::string near = Nearest(name, FieldNames(*type));
      // roi_pooling_param is not a misspelt pooling_param.
      const bool slip = !near.empty() && !name.ends_with("_" + near);
      const std::string_view advice = AdviceFor(name);
      message += slip              ? Join(" Did you mean '", near, "'?")
                 : !advice.empty() ? Join(" ", advice)
                                   : Homes(*type, name);
    }
    return At(context_.open.back().field_place, message);
  }

  // Returns whether an outer message has the unknown field's name, which shows that a brace is
  // missing.
  bool IsOfOuter() const {
    const std::string name = Quoted(complaint_.text, 1);
    return std::any_of(types_.begin(), types_.end() - 1, [&](const Descriptor* outer) {
      return outer != nullptr && outer->FindFieldByName(name) != nullptr;
    });
  }

  // Lists the messages inside `type` that have the field; or all fields if no message has it.
  static std::string Homes(const Descriptor& type, const std::string& name) {
    std::vector<std::string> homes;
    for (int i = 0; i < type.field_count(); ++i) {
      const Descriptor* inner = type.field(i)->message_type();
      if (inner != nullptr && inner->FindFieldByName(name) != nullptr) {
        homes.push_back(type.field(i)->name());
      }
    }
    if (!homes.empty() && homes.size() <= 6) return " It is a field of " + JoinList(homes) + ".";
    if (type.field_count() > 30) return "";
    return " Its fields are " + JoinList(FieldNames(type)) + ".";
  }

  // Explains a field that has a second value, with the line of the first one.
  Error GivenTwice() const {
    const OpenMessage& in = context_.open.back();
    const auto first = in.first.find(in.field);
    const int line = first == in.first.end() ? 0 : first->second.line;
    return At(in.field_place, Join("'", in.field, "' is given twice in ", Here(),
                                   ", first in line ", line, "; it can have only one value"));
  }

  // Explains a name that is not a value of the enum, with the names that are.
  Error UnknownValue() const {
    const std::string value = Quoted(complaint_.text, 0);
    std::string message = Join(context_.open.back().field, " has no value '", value, "'.");
    if (const FieldDescriptor* field = Field(); field != nullptr && field->enum_type() != nullptr) {
      const auto names = ValueNames(*field->enum_type());
      message += DidYouMean(value, names) + " It is one of " + JoinList(names) + ".";
    }
    return At(context_.last_word, message);
  }

  // Explains a missing brace, at the line of the innermost open message.
  Error Unclosed() const {
    const OpenMessage& open = context_.open.back();
    return At(open.opened,
              Join("'", open.name, "' is opened here, but never closed: a '}' is missing ",
                   "before the end of the file"));
  }

  // Explains a missing required field, at the message that lacks it. protobuf reports a path such
  // as layer[2].clip_param.min, but no place, so this follows the path through the tree.
  Error MissingRequired() const {
    const std::string path = complaint_.text.substr(complaint_.text.find(": ") + 2);
    const std::string first = path.substr(0, path.find(','));
    const auto* tree = &parsed_.tree;
    const Descriptor* type = &root_;
    google::protobuf::TextFormat::ParseLocation found;
    const auto steps = SplitList(first, '.');
    for (size_t i = 0; i + 1 < steps.size() && tree != nullptr && type != nullptr; ++i) {
      const size_t bracket = steps[i].find('[');
      const FieldDescriptor* field = type->FindFieldByName(steps[i].substr(0, bracket));
      if (field == nullptr) break;
      const int index = field->is_repeated() ? std::stoi(steps[i].substr(bracket + 1)) : -1;
      found = tree->GetLocation(field, index);
      tree = tree->GetTreeForNested(field, index);
      type = field->message_type();
    }
    const TextPlace place{std::max(found.line, 0) + 1, std::max(found.column, 0) + 1};
    const std::string where = steps.size() > 1 ? steps[steps.size() - 2] : FileWords(root_);
    return At(place, Join(where.substr(0, where.find('[')), " needs a value for '", steps.back(),
                          "', which has no default"));
  }

  // Returns the last field named in the innermost open message, or null if it does not exist.
  const FieldDescriptor* Field() const {
    const Descriptor* type = types_.back();
    return type == nullptr ? nullptr : type->FindFieldByName(context_.open.back().field);
  }

  // Returns the field with the value that the complaint is about, if it is about a value.
  const FieldDescriptor* WrongValue() const {
    static constexpr const char* kStarts[] = {
        "Expected integer", "Expected double", "Expected string",     "Expected identifier",
        "Expected \"{\"",   "Invalid value",   "Integer out of range"};
    for (const char* start : kStarts) {
      if (complaint_.text.starts_with(start)) {
        const FieldDescriptor* field = Field();
        const bool about_name = complaint_.text.starts_with("Expected identifier") &&
                                (field == nullptr || field->enum_type() == nullptr);
        return about_name ? nullptr : field;
      }
    }
    return nullptr;
  }

  // Returns the word or mark at a place, for "the file has ...".
  std::string WordAt(TextPlace place) const {
    if (AtEnd()) return "nothing";
    std::string_view line = LineOf(parsed_.content, place.line);
    int column = 1;
    while (!line.empty() && column < place.column) {
      column += line.front() == '\t' ? 8 - (column - 1) % 8 : 1;
      line.remove_prefix(1);
    }
    const size_t end = std::min(line.find_first_of(" \t,;{}"), line.size());
    return Join("'", line.substr(0, std::min<size_t>(std::max<size_t>(end, 1), 60)), "'");
  }

  // Returns a message for the other complaints, protobuf's own text if it is not known.
  std::string Plain() const {
    const std::string& text = complaint_.text;
    if (text.starts_with("Expected \":\"")) {
      return Join("a ':' is missing after '", context_.open.back().field, "'");
    }
    if (text.starts_with("Expected identifier")) {
      return Join("expected a field name here, not ", WordAt(place_));
    }
    if (text.starts_with("String literals cannot cross")) {
      return "this text has no closing quote in the same line";
    }
    return "this is not protobuf text format: " + text;
  }

  const ParserComplaint& complaint_;
  const Descriptor& root_;
  const ParsedText& parsed_;
  TextPlace place_;
  TextContext context_;
  std::vector<const Descriptor*> types_;
};

}  // namespace

Explanation ExplainComplaint(const ParserComplaint& complaint, const Descriptor& root,
                             const ParsedText& parsed) {
  return Explainer(complaint, root, parsed).Explain();
}

std::string ExplainValue(const FieldDescriptor& field, const std::string& complaint) {
  if (complaint.find("has no field named") != std::string::npos) {
    const auto* const type = field.file()->pool()->FindMessageTypeByName(Quoted(complaint, 0));
    const std::string name = Quoted(complaint, 1);
    return Join("there is no field '", name, "'.",
                type == nullptr ? "" : DidYouMean(name, FieldNames(*type)));
  }
  if (complaint.starts_with("Integer out of range")) return "the number is out of range";
  if (field.message_type() != nullptr && !complaint.starts_with("Expected \"{\"")) {
    return "one of its fields has a wrong value";
  }
  return Join("it needs ", TypeWords(field));
}

}  // namespace trainer
