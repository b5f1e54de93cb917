// Reads the arguments of a verb by its table of flags.

#include <google/protobuf/descriptor.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "solver.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/synonyms.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/flag_set.h"

namespace trainer {
namespace {

[[noreturn]] void Refuse(const std::string& message) { throw Error(ErrorCode::kUsage, message); }

// Returns "true" or "false" for gflags' spellings of either, "" for anything else.
std::string SwitchValue(const std::string& text) {
  static constexpr std::string_view kTrue[] = {"1", "t", "true", "y", "yes"};
  static constexpr std::string_view kFalse[] = {"0", "f", "false", "n", "no"};
  const std::string lower = LowerCase(text);
  if (std::ranges::find(kTrue, lower) != std::end(kTrue)) return "true";
  if (std::ranges::find(kFalse, lower) != std::end(kFalse)) return "false";
  return "";
}

// Returns the value; one of the flag's choices in the spelling of the list, whatever its case.
// Throws kUsage if it is not one of the choices, or not a whole number within the bounds.
std::string Checked(const Flag& flag, const std::string& value) {
  const std::string given = Join("--", flag.name, "=", value, ": ");
  if (flag.kind == FlagKind::kWhole) {
    const std::optional<int64_t> number = ParseNumber<int64_t>(value);
    if (!number) Refuse(given + "not a whole number");
    if (*number < flag.min || *number > flag.max) {
      Refuse(Join(given, "must be from ", flag.min, " to ", flag.max));
    }
  }
  if (flag.choices.empty()) return value;
  const std::vector<std::string> choices = SplitList(flag.choices, '|');
  const auto same = [&](const std::string& choice) {
    return strcasecmp(choice.c_str(), value.c_str()) == 0;
  };
  const auto found = std::ranges::find_if(choices, same);
  if (found != choices.end()) return *found;
  if (choices.size() == 1) {
    Refuse(Join(given, "the only value is ", choices[0],
                flag.otherwise.empty() ? "" : Join("; ", flag.otherwise, value)));
  }
  Refuse(given + "must be one of " + JoinList(choices) + "." + DidYouMean(value, choices));
}

// Returns the field of the solver, not a message, that `name` is the name or a synonym of; "" if
// there is none.
std::string SolverFieldOf(const std::string& name) {
  const auto* const solver = caffe::SolverParameter::descriptor();
  std::vector<std::string> fields;
  for (int i = 0; i < solver->field_count(); ++i) {
    if (solver->field(i)->message_type() == nullptr) fields.push_back(solver->field(i)->name());
  }
  return std::ranges::find(fields, name) != fields.end() ? name : Synonym(name, fields);
}

// Throws kUsage for an unknown flag, with the nearest known flag, else with advice.
[[noreturn]] void RefuseFlag(std::string_view verb, std::span<const Flag> table,
                             const std::string& name) {
  std::vector<std::string> names;
  for (const Flag& flag : table) {
    if (!flag.hidden) names.emplace_back(flag.name);
  }
  const std::string near = Nearest(name, names);
  const std::string_view advice = AdviceFor(name);
  Refuse(Join("'trainer ", verb, "' has no flag --", name, ".",
              !near.empty()     ? Join(" Did you mean --", near, "?")
              : !advice.empty() ? Join(" ", advice)
                                : Join(" 'trainer help ", verb, "' lists the flags")));
}

}  // namespace

const std::string& Flags::Text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw Error(ErrorCode::kInternal, Join("no flag '", name, "' in this verb's table"));
  }
  return found->second;
}

int Flags::Whole(std::string_view name) const {
  return static_cast<int>(ParseNumber<int64_t>(Text(name)).value_or(0));
}

bool Flags::Switch(std::string_view name) const { return Text(name) == "true"; }

std::vector<std::string> Flags::List(std::string_view name) const { return SplitList(Text(name)); }

const std::vector<std::string>& Flags::Each(std::string_view name) const {
  static const std::vector<std::string> kNone;
  Text(name);
  const auto found = each_.find(name);
  return found == each_.end() ? kNone : found->second;
}

bool SplitFlag(const std::string& argument, FlagText* out) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  if (argument[1] == '.' || std::isdigit(static_cast<unsigned char>(argument[1]))) return false;
  const std::string text = argument.substr(argument[1] == '-' ? 2 : 1);
  const size_t equals = text.find('=');
  out->name = text.substr(0, equals);
  std::ranges::replace(out->name, '-', '_');
  out->has_value = equals != std::string::npos;
  out->value = out->has_value ? text.substr(equals + 1) : "";
  return true;
}

const Flag* FindFlag(std::span<const Flag> table, const std::string& name) {
  for (const Flag& flag : table) {
    if (flag.name == name || (!flag.also.empty() && flag.also == name)) return &flag;
  }
  for (const Flag& flag : table) {
    if (flag.kind == FlagKind::kSwitch && name == Join("no", flag.name)) return &flag;
  }
  return nullptr;
}

// Parses one command line by a table of flags.
class FlagParser {
 public:
  FlagParser(std::string_view verb, std::span<const Flag> table,
             const std::vector<std::string>& arguments)
      : verb_(verb), table_(table), arguments_(arguments) {}

  // Returns the values of all flags of the table, and the words. To be called once.
  Flags Parse() {
    for (const Flag& flag : table_) flags_.values_[std::string(flag.name)] = flag.fallback;
    bool words_only = false;
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      FlagText text;
      if (words_only || !SplitFlag(argument, &text)) {
        flags_.words_.push_back(argument);
      } else if (text.name.empty() && !text.has_value) {
        words_only = true;
      } else {
        Take(text);
      }
    }
    return std::move(flags_);
  }

 private:
  // Stores the value of one flag, which may be in the next argument.
  void Take(const FlagText& text) {
    const Flag* flag = FindFlag(table_, text.name);
    if (flag == nullptr) {
      if (TakeSolverField(text)) return;
      RefuseFlag(verb_, table_, text.name);
    }
    std::string value = text.value;
    if (flag->kind == FlagKind::kSwitch) {
      value = SwitchFrom(*flag, text);
    } else if (!text.has_value) {
      value = NextValue(*flag);
    }
    if (!value.empty() || flag->kind != FlagKind::kText) value = Checked(*flag, value);
    Put(*flag, value);
  }

  // Stores a value. A kEach flag keeps it in addition to earlier ones.
  void Put(const Flag& flag, const std::string& value) {
    if (flag.kind == FlagKind::kEach) flags_.each_[std::string(flag.name)].push_back(value);
    flags_.values_[std::string(flag.name)] = value;
    flags_.given_.emplace(flag.name);
  }

  // Stores --max_iter=100, i.e. a field of the solver given as a flag by its name or by a synonym,
  // as --set of that field. Returns false if there is no such field, or the verb has no --set or no
  // --solver.
  bool TakeSolverField(const FlagText& text) {
    const Flag* const set = FindFlag(table_, "set");
    if (set == nullptr || FindFlag(table_, "solver") == nullptr) return false;
    const std::string field = SolverFieldOf(text.name);
    if (field.empty()) return false;
    const Flag flag = {.name = text.name, .value = "VALUE"};
    Put(*set, Join(field, "=", text.has_value ? text.value : NextValue(flag)));
    return true;
  }

  // Returns "true" or "false" for --x, --nox and --x=false. Throws kUsage for any other value, and
  // for a value of --nox.
  static std::string SwitchFrom(const Flag& flag, const FlagText& text) {
    const bool negated = text.name != flag.name;
    if (!text.has_value) return negated ? "false" : "true";
    const std::string value = negated ? "" : SwitchValue(text.value);
    if (value.empty()) {
      Refuse(
          Join("--", text.name, "=", text.value, ": write --", flag.name, " or --no", flag.name));
    }
    return value;
  }

  // Takes the next argument as the value of a flag without "=". If that is a flag or missing,
  // returns the flag's bare value, and throws kUsage if it has none.
  std::string NextValue(const Flag& flag) {
    FlagText ignored;
    if (next_ == arguments_.size() || SplitFlag(arguments_[next_], &ignored)) {
      if (!flag.bare.empty()) return std::string(flag.bare);
      Refuse(Join("--", flag.name, " needs a value: --", flag.name, "=", flag.value));
    }
    return arguments_[next_++];
  }

  std::string_view verb_;
  std::span<const Flag> table_;
  const std::vector<std::string>& arguments_;
  size_t next_ = 0;
  Flags flags_;
};

Flags ParseFlags(std::string_view verb, std::span<const Flag> table,
                 const std::vector<std::string>& arguments) {
  return FlagParser(verb, table, arguments).Parse();
}

}  // namespace trainer
